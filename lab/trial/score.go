package trial

import (
	"slices"

	"grayfail/event"
)

// The rule of the exporter is r < 0.5. Its baseline and the medians of
// undisturbed requests are estimates of one speed, so between these bounds, as
// parts of the usual rate, a request may be judged either way.
const (
	SurelySlow = 0.45
	SurelyFine = 0.60
)

// Usual is the range of the undisturbed rate, in tokens per second.
type Usual struct{ Low, High float64 }

// Score compares what the exporter said of some requests with what the engine
// itself measured and with what was done.
type Score struct {
	Requests int
	Failed   int // no HTTP 200, or no usable answer
	Unjudged int // no row, or verdict unknown
	Slow     int // by the exporter
	Missed   int // surely slow, and not found
	Invented int // surely fine, and called slow
	// Of the slow ones: named on the faulty leg, on another, on none.
	Right, Wrong, Abstained int
	// Shares of the named leg in the excess, sorted.
	Shares []float64
}

// ScoreOf scores results whose rows have been joined.
func ScoreOf(results []Result, usual Usual, faulty string) Score {
	s := Score{Requests: len(results)}
	for _, r := range results {
		if r.Status != 200 || r.Err != nil {
			s.Failed++
		}
		if r.Row == nil || r.Row.Verdict == event.VerdictUnknown {
			s.Unjudged++
			continue
		}
		if r.Row.Verdict != event.VerdictSlow {
			if r.Rate() < SurelySlow*usual.Low {
				s.Missed++
			}
			continue
		}
		s.Slow++
		if r.Rate() > SurelyFine*usual.High {
			s.Invented++
		}
		switch r.Row.Leg {
		case "":
			s.Abstained++
			continue
		case faulty:
			s.Right++
		default:
			s.Wrong++
		}
		if r.Row.ExcessMS > 0 {
			s.Shares = append(s.Shares, r.Row.LegsMS[r.Row.Leg]/r.Row.ExcessMS)
		}
	}
	slices.Sort(s.Shares)
	return s
}

// Of picks the results of one condition.
func Of(results []Result, condition string) (out []Result) {
	for _, r := range results {
		if r.Condition == condition {
			out = append(out, r)
		}
	}
	return out
}
