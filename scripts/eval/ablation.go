package main

import (
	"cmp"
	"math"
	"slices"

	"grayfail/event"
	"grayfail/scripts/eval/scenario"
)

// slidingWindow judges every request against the median of the last 50 of the
// same concurrency. With exclude it does not learn from those it calls slow.
// This is what published detectors do; concurrency is given to them.
func slidingWindow(t *scenario.Timeline, exclude bool) []said {
	const size, least = 50, 10
	windows := make(map[int][]float64)
	out := make([]said, len(t.Truths))
	for i := range t.Truths {
		x := &t.Truths[i]
		if x.Failed {
			out[i] = said{decided: true, slow: true}
			continue
		}
		key := scenario.Bucket(x.InFlight)
		w := windows[key]
		if len(w) >= least {
			sorted := slices.Clone(w)
			slices.Sort(sorted)
			n := len(sorted)
			out[i] = said{decided: true, slow: x.Rate < 0.5*(sorted[(n-1)/2]+sorted[n/2])/2}
		}
		if !exclude || !out[i].slow {
			w = append(w, x.Rate)
			windows[key] = w[max(0, len(w)-size):]
		}
	}
	return out
}

// claimsOf are the episodes of a method that has none of its own.
func claimsOf(says []said) []claim {
	return episodes(len(says), func(i int) bool { return says[i].decided }, func(i int) bool { return says[i].slow })
}

// alwaysName keeps the verdicts and blames the leg with the largest share.
func (j *judged) alwaysName(t *scenario.Timeline, says []said) []said {
	out := slices.Clone(says)
	legs := make(map[string]string)
	for i := range j.rows {
		legs[j.rows[i].ID] = largest(j.rows[i].LegsMS)
	}
	for i := range out {
		if out[i].slow {
			out[i].leg = legs[t.Truths[i].ID]
			out[i].cause = causeFor(t, out[i].leg)
		}
	}
	return out
}

func largest(ms map[string]float64) (leg string) {
	for name, v := range ms {
		if v > 0 && (leg == "" || v > ms[leg] || v == ms[leg] && name < leg) {
			leg = name
		}
	}
	return leg
}

// causeFor grants a method that names legs only the right cause for the leg.
func causeFor(t *scenario.Timeline, leg string) event.Cause {
	if leg == "" {
		return event.CauseUnattributed
	}
	for _, a := range t.Accept {
		if a.Leg == leg {
			return a.Cause
		}
	}
	return "some"
}

// Rank correlation looks at the last 30 requests, as the field's experiments
// do; 0.361 is the critical value for p = 0.05 at n = 30.
const (
	correlated = 30
	critical   = 0.361
)

// rawCorrelation keeps the verdicts and blames the leg whose time a token
// goes most strongly with the falling rate.
func rawCorrelation(t *scenario.Timeline, says []said) []said {
	out := slices.Clone(says)
	for i := range out {
		if out[i].slow {
			out[i].leg = correlatedLeg(t, i+1)
			out[i].cause = causeFor(t, out[i].leg)
		}
	}
	return out
}

// correlatedLeg is the leg that the last requests before end would blame.
func correlatedLeg(t *scenario.Timeline, end int) (leg string) {
	var rows []*scenario.Truth
	for i := end - 1; i >= 0 && len(rows) < correlated; i-- {
		if !t.Truths[i].Failed {
			rows = append(rows, &t.Truths[i])
		}
	}
	if len(rows) < correlated {
		return ""
	}
	rates := ranks(rows, func(x *scenario.Truth) float64 { return x.Rate })
	best := -critical
	for l, name := range t.Legs {
		if rho := pearson(rates, ranks(rows, func(x *scenario.Truth) float64 { return x.LegSeconds[l] })); rho < best {
			best, leg = rho, name
		}
	}
	return leg
}

// unasked counts the windows in which rank correlation blames a leg though
// nothing is wrong with any: every ten requests it is asked.
func unasked(t *scenario.Timeline) (named, asked int) {
	for end := correlated; end <= len(t.Truths); end += 10 {
		asked++
		if correlatedLeg(t, end) != "" {
			named++
		}
	}
	return named, asked
}

func ranks(rows []*scenario.Truth, of func(*scenario.Truth) float64) []float64 {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(of(rows[a]), of(rows[b])) })
	out := make([]float64, len(rows))
	for rank, i := range order {
		out[i] = float64(rank)
	}
	return out
}

func pearson(a, b []float64) float64 {
	mean := float64(len(a)-1) / 2
	var ab, aa, bb float64
	for i := range a {
		ab += (a[i] - mean) * (b[i] - mean)
		aa += (a[i] - mean) * (a[i] - mean)
		bb += (b[i] - mean) * (b[i] - mean)
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}
