package report

import (
	"math"
	"slices"
)

// Line of the table: what the requests of one condition came to. Values are
// nil where no request had one.
type Line struct {
	Condition string `json:"condition"`
	Requests  int    `json:"requests"` // that count
	Measured  int    `json:"measured"` // of them, with a figure
	// Figure of the campaign's measure; P10 by nearest rank, over the worse end:
	// of a latency it is the 90th percentile.
	Median        *float64 `json:"median"`
	P10           *float64 `json:"p10"`
	Min           *float64 `json:"min"`
	Max           *float64 `json:"max"`
	LatencyMedian *float64 `json:"latency_median_s"`
	LatencyP90    *float64 `json:"latency_p90_s"`
	Slow          int      `json:"slow"` // those that failed too
	Unknown       int      `json:"unknown"`
	Failed        int      `json:"failed"`
	Invalid       int      `json:"invalid"` // runs that are part of no figure
}

func tabulate(condition string, runs []*Run, m Measure) Line {
	l := Line{Condition: condition}
	var values, latencies []float64
	for _, r := range runs {
		if !r.Counts() {
			l.Invalid++
			continue
		}
		l.Requests++
		if v, ok := m.Of(r); ok {
			values = append(values, v)
		}
		if v, ok := Latency.Of(r); ok {
			latencies = append(latencies, v)
		}
		switch {
		case r.Slow():
			l.Slow++
		case !fast(r):
			l.Unknown++
		}
		if r.Failed() {
			l.Failed++
		}
	}
	slices.Sort(values)
	slices.Sort(latencies)
	l.Measured = len(values)
	worse := 0.1
	if m == Latency {
		worse = 0.9
	}
	l.Median, l.P10 = median(values), quantile(values, worse)
	l.Min, l.Max = quantile(values, 0), quantile(values, 1)
	l.LatencyMedian, l.LatencyP90 = median(latencies), quantile(latencies, 0.9)
	return l
}

// median of sorted values.
func median(sorted []float64) *float64 {
	n := len(sorted)
	if n == 0 {
		return nil
	}
	m := (sorted[(n-1)/2] + sorted[n/2]) / 2
	return &m
}

// quantile of sorted values by nearest rank.
func quantile(sorted []float64, q float64) *float64 {
	if len(sorted) == 0 {
		return nil
	}
	v := sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
	return &v
}
