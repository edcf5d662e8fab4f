package report

import (
	"fmt"
	"slices"

	"grayfail/lab/campaign/report/twosample"
)

// Comparison of two campaigns, condition by condition: from A to B.
type Comparison struct {
	A          Side     `json:"a"`
	B          Side     `json:"b"`
	Measure    Measure  `json:"measure"`
	Conditions []Change `json:"conditions"` // that both have
	// OnlyA and OnlyB are conditions that cannot be compared.
	OnlyA []string `json:"only_a"`
	OnlyB []string `json:"only_b"`
}

// Side is one of the campaigns.
type Side struct {
	Name     string `json:"name"`
	SpecHash string `json:"spec_hash"`
}

// Change of one condition.
type Change struct {
	Condition string  `json:"condition"`
	A         Line    `json:"a"`
	B         Line    `json:"b"`
	Measured  *Effect `json:"measured"` // in the measure's unit; nil without figures
	// Normalized is the same over figures by each block's control: what differs
	// between the two days or machines cancels. Nil for the control itself.
	Normalized *Effect `json:"normalized"`
}

// Effect is what the samples say about the change from A to B.
type Effect struct {
	NA    int             `json:"n_a"`
	NB    int             `json:"n_b"`
	Shift twosample.Shift `json:"shift"`
	Test  twosample.Test  `json:"test"`
}

// Compare needs two campaigns of one measure.
func Compare(a, b *Results) (*Comparison, error) {
	if a.Method.Measure != b.Method.Measure {
		return nil, fmt.Errorf("one campaign measures %s, the other %s", a.Method.Measure, b.Method.Measure)
	}
	out := &Comparison{
		A: Side{a.Method.Name, a.Method.SpecHash}, B: Side{b.Method.Name, b.Method.SpecHash}, Measure: a.Method.Measure,
		Conditions: []Change{}, OnlyA: missing(a, b), OnlyB: missing(b, a),
	}
	if len(out.OnlyA) == len(a.Method.Conditions) {
		return nil, fmt.Errorf("no condition is in both campaigns: %v and %v", a.Method.Conditions, b.Method.Conditions)
	}
	for i, name := range a.Method.Conditions {
		j := slices.Index(b.Method.Conditions, name)
		if j < 0 {
			continue
		}
		c := Change{Condition: name, A: a.Table[i], B: b.Table[j]}
		c.Measured = effect(a.Series[i].values(), b.Series[j].values())
		if name != a.Method.Control && name != b.Method.Control {
			c.Normalized = effect(a.Series[i].normalized(), b.Series[j].normalized())
		}
		out.Conditions = append(out.Conditions, c)
	}
	return out, nil
}

func missing(of, in *Results) []string {
	out := []string{}
	for _, c := range of.Method.Conditions {
		if !slices.Contains(in.Method.Conditions, c) {
			out = append(out, c)
		}
	}
	return out
}

func effect(a, b []float64) *Effect {
	shift, ok := twosample.HodgesLehmann(a, b)
	if !ok {
		return nil
	}
	test, _ := twosample.MannWhitney(b, a)
	return &Effect{len(a), len(b), shift, test}
}

func (s *Series) values() []float64 {
	out := make([]float64, len(s.Points))
	for i, p := range s.Points {
		out[i] = p.Value
	}
	return out
}

func (s *Series) normalized() []float64 {
	var out []float64
	for _, p := range s.Points {
		if p.Normalized != nil {
			out = append(out, *p.Normalized)
		}
	}
	return out
}
