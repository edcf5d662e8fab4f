package report

import "slices"

// Normalized is what the runs of one condition came to, each divided by the
// median of its own block's control condition: what drifts over hours cancels.
type Normalized struct {
	Condition string   `json:"condition"`
	N         int      `json:"n"`
	Median    *float64 `json:"median"`
	P10       *float64 `json:"p10"`
	Min       *float64 `json:"min"`
	Max       *float64 `json:"max"`
	Below     int      `json:"below"` // the method's SlowBelow
	// WithoutBlock counts runs with a figure whose block has no control run that
	// counts.
	WithoutBlock int `json:"without_block"`
}

// baselines are the medians of the control's runs by block.
func baselines(runs []Run, m *Method) map[int]float64 {
	of := make(map[int][]float64)
	for i := range runs {
		if r := &runs[i]; r.Condition == m.Control {
			if v, ok := m.Measure.Of(r); ok {
				of[r.Block] = append(of[r.Block], v)
			}
		}
	}
	out := make(map[int]float64, len(of))
	for block, values := range of {
		slices.Sort(values)
		if v := *median(values); v > 0 {
			out[block] = v
		}
	}
	return out
}

// relative is the run's figure by its block's baseline: 1 as good as the
// control, 0.5 half as fast.
func (a *analysis) relative(r *Run) (value float64, ok bool) {
	v, ok := a.m.Measure.Of(r)
	base, known := a.base[r.Block]
	if !ok || !known {
		return 0, false
	}
	if a.m.Measure == Latency {
		v, base = base, v
	}
	value = v / base
	return value, value <= maxFigure // neither infinite nor not a number
}

func (a *analysis) normalize(condition string, runs []*Run) Normalized {
	n := Normalized{Condition: condition}
	var values []float64
	for _, r := range runs {
		v, ok := a.relative(r)
		if _, measured := a.m.Measure.Of(r); !ok && measured {
			n.WithoutBlock++
		}
		if !ok {
			continue
		}
		values = append(values, v)
		if v < a.m.SlowBelow {
			n.Below++
		}
	}
	slices.Sort(values)
	n.N = len(values)
	n.Median, n.P10, n.Min, n.Max = median(values), quantile(values, 0.1), quantile(values, 0), quantile(values, 1)
	return n
}
