package report

import (
	"cmp"
	"slices"
)

// Split of requests by whether one of their connections had a retransmission
// timeout.
type Split struct {
	With    int `json:"with_rto"`
	Without int `json:"without_rto"`
	Unknown int `json:"unknown"` // nobody counted
}

func (s *Split) add(r *Run) {
	switch v, ok := RTO.Of(r); {
	case !ok:
		s.Unknown++
	case v > 0:
		s.With++
	default:
		s.Without++
	}
}

// Timeouts answers for one condition whether slow requests are those with a
// retransmission timeout. Failed ones are apart from slow ones here.
type Timeouts struct {
	Condition string `json:"condition"`
	Slow      Split  `json:"slow"`
	Fast      Split  `json:"fast"`
	Failed    Split  `json:"failed"`
}

func timeouts(condition string, runs []*Run) Timeouts {
	t := Timeouts{Condition: condition}
	for _, r := range runs {
		switch {
		case !r.Counts():
		case r.Failed():
			t.Failed.add(r)
		case r.Slow():
			t.Slow.add(r)
		case fast(r):
			t.Fast.add(r)
		}
	}
	return t
}

// Count of one name.
type Count struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Naming says which legs and causes the exporter gave for the slow and failed
// requests of a condition; a leg "" is one that was not named.
type Naming struct {
	Condition string  `json:"condition"`
	Slow      int     `json:"slow"`
	Legs      []Count `json:"legs"`
	Causes    []Count `json:"causes"`
}

func naming(condition string, runs []*Run) Naming {
	n := Naming{Condition: condition}
	legs, causes := make(map[string]int), make(map[string]int)
	for _, r := range runs {
		if r.Counts() && r.Slow() {
			n.Slow++
			legs[r.Request.NamedLeg]++
			causes[string(r.Request.Cause)]++
		}
	}
	n.Legs, n.Causes = counts(legs), counts(causes)
	return n
}

// counts orders by count, then by name.
func counts(of map[string]int) []Count {
	out := []Count{}
	for name, n := range of {
		out = append(out, Count{name, n})
	}
	slices.SortFunc(out, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Invalid runs of a condition by reason.
type Invalid struct {
	Condition string  `json:"condition"`
	Reasons   []Count `json:"reasons"`
}

func invalid(condition string, runs []*Run) Invalid {
	reasons := make(map[string]int)
	for _, r := range runs {
		switch {
		case r.Counts():
		case r.Valid:
			reasons["request canceled"]++
		default:
			reasons[r.InvalidReason]++
		}
	}
	return Invalid{condition, counts(reasons)}
}
