package push

import (
	"crypto/rand"
	"strings"

	"grayfail/collector/engine"
	"grayfail/event"
)

// Longest names that clients may choose, in bytes; an id and a model may have
// what engine allows. Longer ones are cut, not refused: a record is worth
// more than its label.
const (
	maxSource    = 64
	maxCondition = 64
	ownSource    = "push"
)

// name makes what a client chose safe for labels, logs and exemplars.
func name(r *event.Request) error {
	r.Model = engine.CleanName(r.Model, engine.MaxModel)
	if r.Model == "" {
		return &event.FieldError{Field: "model", Reason: "is blank"}
	}
	if r.Source = engine.CleanName(r.Source, maxSource); r.Source == "" {
		r.Source = ownSource
	}
	r.Condition = engine.CleanName(r.Condition, maxCondition)
	if r.ID = engine.CleanID(r.ID); r.ID == "" {
		r.ID = "gf-" + strings.ToLower(rand.Text()[:16])
	}
	return nil
}
