package spec

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"grayfail/lab/campaign/report"
)

// Slot is one condition of one block: Repeats runs in a row, from FirstRun on,
// each of Concurrency requests.
type Slot struct {
	Block     int    `json:"block"`
	Position  int    `json:"position"`
	Condition string `json:"condition"`
	FirstRun  int    `json:"first_run"`
}

// Order of all slots: the same for the same specification.
func (s *Spec) Order() []Slot {
	random := rand.New(rand.NewPCG(s.OrderSeed, 0))
	out := make([]Slot, 0, s.Blocks*len(s.Conditions))
	run := 0
	for block := range s.Blocks {
		for position, i := range random.Perm(len(s.Conditions)) {
			out = append(out, Slot{Block: block, Position: position, Condition: s.Conditions[i].Name, FirstRun: run})
			run += s.Repeats
		}
	}
	return out
}

// Method is what the report holds the runs against.
func (s *Spec) Method() report.Method {
	m := report.Method{
		Name: s.Name, Question: s.Question, SpecHash: s.Hash, OrderSeed: s.OrderSeed, Planned: s.Planned(), Blocks: s.Blocks,
		Measure: s.Rule.Measure, SlowBelow: s.Rule.SlowBelow, Control: s.Rule.Control, Details: s.details(),
	}
	if m.SpecHash == "" {
		m.SpecHash = "unhashed" // while it is checked
	}
	for i := range s.Conditions {
		m.Conditions = append(m.Conditions, s.Conditions[i].Name)
	}
	for _, c := range s.Criteria {
		m.Criteria = append(m.Criteria, report.Criterion(c))
	}
	return m
}

// details are sentences about request and injectors.
func (s *Spec) details() []string {
	request := "POST " + s.Request.URL
	switch {
	case len(s.Request.Command) > 0:
		request = "Command " + strings.Join(s.Request.Command, " ")
	case s.Request.Body == "":
		request = "GET " + s.Request.URL
	}
	out := []string{fmt.Sprintf("%s, %d at once, %s at most, %d warm-up requests.", request, s.Concurrency, time.Duration(s.Timeout), s.Warmup)}
	for i := range s.Conditions {
		out = append(out, s.Conditions[i].String())
	}
	return out
}

// String says how the condition is made.
func (c *Condition) String() string {
	at := c.Device
	if c.Netns != "" {
		at += " of network namespace " + c.Netns
	}
	how := "no fault"
	switch c.Kind() {
	case "netem":
		how = fmt.Sprintf("netem %s on what %s sends", strings.Join(c.Netem, " "), at)
	case "tbf":
		how = fmt.Sprintf("tbf %s on what %s sends", strings.Join(c.TBF, " "), at)
	case "nftables":
		how = fmt.Sprintf("%g%% of what arrives at %s dropped by nftables", c.DropPercent, at)
	case "pause":
		how = fmt.Sprintf("process %d stopped for %g%% of each %s", c.Pause.PID, c.Pause.Percent, time.Duration(c.Pause.Period))
	case "commands":
		how = "command " + strings.Join(c.Apply, " ")
	}
	return c.Name + ": " + how + "."
}

// PlanJSON is plan.json, written before the first run.
func (s *Spec) PlanJSON() ([]byte, error) {
	body, err := json.MarshalIndent(struct {
		Version int           `json:"version"`
		Method  report.Method `json:"method"`
		Order   []Slot        `json:"order"`
	}{Version, s.Method(), s.Order()}, "", " ")
	return append(body, '\n'), err
}

// Text is the plan for people: a dry run prints it.
func (s *Spec) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "campaign %s, %s\n", s.Name, s.Hash)
	if s.Question != "" {
		fmt.Fprintf(&b, "question: %s\n", s.Question)
	}
	for _, d := range s.details() {
		fmt.Fprintf(&b, "  %s\n", d)
	}
	m := s.Method()
	for _, c := range m.Criteria {
		fmt.Fprintf(&b, "criterion: %s\n", c)
	}
	fmt.Fprintf(&b, "%d runs: %d blocks, %d conditions, %d repeats, %d at once; order by seed %d:\n", s.Planned(), s.Blocks, len(s.Conditions), s.Repeats, s.Concurrency, s.OrderSeed)
	for block, slots := 0, s.Order(); block < s.Blocks; block++ {
		var names []string
		for _, slot := range slots[block*len(s.Conditions) : (block+1)*len(s.Conditions)] {
			names = append(names, slot.Condition)
		}
		fmt.Fprintf(&b, "  block %d: %s\n", block+1, strings.Join(names, ", "))
	}
	return b.String()
}
