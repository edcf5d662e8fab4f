package report

import (
	"fmt"
	"slices"
)

// Results is what a campaign came to.
type Results struct {
	Method       Method        `json:"method"`
	Made         int           `json:"made"` // of the planned runs, invalid ones too
	Cut          bool          `json:"cut"`  // the file ends inside a line
	Table        []Line        `json:"table"`
	Normalized   []Normalized  `json:"normalized"`
	Criteria     []Judgement   `json:"criteria"`
	Correlations []Correlation `json:"correlations"` // all that can be computed
	Timeouts     []Timeouts    `json:"timeouts"`
	Naming       []Naming      `json:"naming"`
	Invalid      []Invalid     `json:"invalid"`
	// Series are the figures behind the plots.
	Series []Series `json:"-"`
}

// Series are the figures of one condition.
type Series struct {
	Condition string
	Points    []Point
}

// Point is one run's figure.
type Point struct {
	Value      float64
	Normalized *float64 // nil without a baseline of its block
	Slow       bool
}

type analysis struct {
	m    *Method
	base map[int]float64
	by   map[string][]*Run
}

func (a *analysis) runs(condition string) []*Run { return a.by[condition] }

// Analyse computes everything from the runs of one file. The error says what
// is wrong with the method, or that the runs are of another specification.
func Analyse(m Method, file Runs) (*Results, error) {
	if m.Measure == "" {
		m.Measure = Decode
	}
	m.Conditions = slices.Clone(m.Conditions)
	if err := m.Check(); err != nil {
		return nil, err
	}
	a := &analysis{m: &m, by: make(map[string][]*Run)}
	made := make(map[int]bool)
	for i := range file.Runs {
		r := &file.Runs[i]
		made[r.Run] = true
		if r.SpecHash != m.SpecHash {
			return nil, fmt.Errorf("run %d is of the specification %s, not %s", r.Run, r.SpecHash, m.SpecHash)
		}
		a.by[r.Condition] = append(a.by[r.Condition], r)
		if !slices.Contains(m.Conditions, r.Condition) {
			m.Conditions = append(m.Conditions, r.Condition)
		}
	}
	if m.Control != "" {
		a.base = baselines(file.Runs, &m)
	}
	out := &Results{Method: m, Made: len(made), Cut: file.Cut, Criteria: []Judgement{}, Correlations: []Correlation{}}
	for _, c := range m.Conditions {
		runs := a.runs(c)
		out.Table = append(out.Table, tabulate(c, runs, m.Measure))
		if m.Control != "" {
			out.Normalized = append(out.Normalized, a.normalize(c, runs))
		}
		for _, e := range Evidences {
			if found, _ := a.correlate(c, e); found != nil {
				out.Correlations = append(out.Correlations, *found)
			}
		}
		out.Timeouts = append(out.Timeouts, timeouts(c, runs))
		out.Naming = append(out.Naming, naming(c, runs))
		if i := invalid(c, runs); len(i.Reasons) > 0 {
			out.Invalid = append(out.Invalid, i)
		}
		out.Series = append(out.Series, a.series(c, runs))
	}
	for _, c := range m.Criteria {
		out.Criteria = append(out.Criteria, a.judge(c))
	}
	return out, nil
}

func (a *analysis) series(condition string, runs []*Run) Series {
	s := Series{Condition: condition}
	for _, r := range runs {
		v, ok := a.m.Measure.Of(r)
		if !ok {
			continue
		}
		p := Point{Value: v, Slow: r.Slow()}
		if n, ok := a.relative(r); ok {
			p.Normalized = &n
		}
		s.Points = append(s.Points, p)
	}
	return s
}
