package replay

import (
	"math"
	"slices"

	"grayfail/detector"
	"grayfail/event"
)

// Condition is one line of the table: the decode phases recorded under one
// condition. Values are null where no request had one.
type Condition struct {
	Condition     string   `json:"condition"`
	Requests      int      `json:"requests"`
	Median        *float64 `json:"median"` // tokens per second
	P10           *float64 `json:"p10"`    // by nearest rank
	Min           *float64 `json:"min"`
	Max           *float64 `json:"max"`
	LatencyMedian *float64 `json:"latency_median_s"`
	LatencyP90    *float64 `json:"latency_p90_s"`
	Slow          int      `json:"slow"`
	Unknown       int      `json:"unknown"`
	Failed        int      `json:"failed"`
}

// table gathers rows by condition, in order of first appearance.
type table struct {
	order []string
	by    map[string]*gathered
	ends  map[[2]string]int64
}

type gathered struct {
	line             Condition
	rates, latencies []float64
	scores           []detector.Score
}

func newTable() *table {
	return &table{by: make(map[string]*gathered), ends: make(map[[2]string]int64)}
}

func (t *table) of(condition string) *gathered {
	g := t.by[condition]
	if g == nil {
		g = &gathered{line: Condition{Condition: condition}}
		t.by[condition] = g
		t.order = append(t.order, condition)
	}
	return g
}

func (t *table) request(r *event.Request) {
	key := [2]string{r.Source, r.Model}
	t.ends[key] = max(t.ends[key], r.EndNS)
	if r.Outcome != event.OutcomeCanceled && r.StartNS > 0 && r.EndNS > r.StartNS {
		g := t.of(r.Condition)
		g.latencies = append(g.latencies, float64(r.EndNS-r.StartNS)/1e9)
	}
}

func (t *table) row(row *event.Row) {
	if row.Phase != event.PhaseDecode {
		return
	}
	g := t.of(row.Condition)
	g.line.Requests++
	switch row.Verdict {
	case event.VerdictSlow:
		g.line.Slow++
	case event.VerdictUnknown:
		g.line.Unknown++
	}
	if row.Outcome == event.OutcomeError || row.Outcome == event.OutcomeTimeout {
		g.line.Failed++
	}
	if row.Rate != nil {
		g.rates = append(g.rates, *row.Rate)
	}
}

func (t *table) score(s *detector.Score) {
	g := t.of(s.Condition)
	g.scores = append(g.scores, *s)
}

func (t *table) lastEnd(source, model string) int64 { return t.ends[[2]string{source, model}] }

func (t *table) conditions() []Condition {
	out := []Condition{}
	for _, name := range t.order {
		g := t.by[name]
		slices.Sort(g.rates)
		slices.Sort(g.latencies)
		g.line.Median = median(g.rates)
		g.line.P10, g.line.Min, g.line.Max = rank(g.rates, 0.1), rank(g.rates, 0), rank(g.rates, 1)
		g.line.LatencyMedian, g.line.LatencyP90 = median(g.latencies), rank(g.latencies, 0.9)
		out = append(out, g.line)
	}
	return out
}

func (t *table) correlations(cfg detector.Config) []event.Correlation {
	out := []event.Correlation{}
	for _, name := range t.order {
		for _, c := range detector.Correlate(t.by[name].scores, cfg.Permutations, cfg.Seed) {
			c.Condition = name
			out = append(out, c)
		}
	}
	return out
}

func median(sorted []float64) *float64 {
	n := len(sorted)
	if n == 0 {
		return nil
	}
	m := (sorted[(n-1)/2] + sorted[n/2]) / 2
	return &m
}

// rank is a quantile by nearest rank.
func rank(sorted []float64, q float64) *float64 {
	if len(sorted) == 0 {
		return nil
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return &sorted[min(max(i, 0), len(sorted)-1)]
}
