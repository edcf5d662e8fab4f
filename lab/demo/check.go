package demo

import (
	"fmt"
	"slices"

	"grayfail/event"
	"grayfail/lab/trial"
)

// The rule of the exporter is r < 0.5. Its baseline and the medians of the
// campaign's undisturbed requests, at first and between the faults, are estimates
// of one speed, so between these bounds a request may be judged either way.
const (
	surelySlow = 0.45
	surelyFine = 0.60
)

// wantShare is how much of the excess the named leg has to hold, in the median.
const wantShare = 0.8

// wantFound is how many of the requests under the strong fault have to be slow
// at least, as a part of them: else the fault did not bite and nothing was shown.
const wantFound = 0.2

// An undisturbed machine runs undisturbed requests at one speed. Where it does
// not, requests are slow for reasons nobody injected, and what was found says
// nothing about the exporter.
const (
	steadyMin   = 0.60 // slowest control request, of their median
	steadyDrift = 0.70 // medians of warm-up and control, of each other
)

// unsteady says how the machine disturbed the campaign, or "".
func (v verdict) unsteady(results []trial.Result) string {
	lines := trial.Summarise(results, []string{trial.WarmUpName, v.control})
	warm, control := lines[0], lines[1]
	switch {
	case control.Min < steadyMin*control.Median:
		return fmt.Sprintf("requests without any fault ran at %.0f to %.0f tok/s", control.Min, control.Max)
	case min(warm.Median/control.Median, control.Median/warm.Median) < steadyDrift:
		return fmt.Sprintf("requests without any fault ran at %.0f tok/s at first and at %.0f later (medians)", warm.Median, control.Median)
	}
	return ""
}

// finding is one thing that was checked.
type finding struct {
	what string
	ok   bool
}

// verdict of a campaign: faulty is the leg that the faults were on.
type verdict struct {
	control, strong string // conditions: no fault, the strong fault
	faulty          string
}

// shares of the named leg in the excess, of the slow requests of a condition,
// sorted; and how often each leg was named, "" where none.
func shares(results []trial.Result, condition string) (named map[string]int, share []float64) {
	named = map[string]int{}
	for _, r := range results {
		if r.Condition != condition || r.Row == nil || r.Row.Verdict != event.VerdictSlow {
			continue
		}
		named[r.Row.Leg]++
		if r.Row.Leg != "" && r.Row.ExcessMS > 0 {
			share = append(share, r.Row.LegsMS[r.Row.Leg]/r.Row.ExcessMS)
		}
	}
	slices.Sort(share)
	return named, share
}

// check says whether the exporter did its job. The truth is what the engine
// itself measured, against the undisturbed medians.
func (v verdict) check(results []trial.Result) []finding {
	var (
		notOK       int
		controlSlow int
		wrong       int
		unnamed     int
		strongSlow  int
		strongAll   int
		unjudged    int
	)
	lines := trial.Summarise(results, []string{trial.WarmUpName, v.control})
	usualLow, usualHigh := min(lines[0].Median, lines[1].Median), max(lines[0].Median, lines[1].Median)
	var missed, invented int
	for _, r := range results {
		if r.Status != 200 || r.Err != nil {
			notOK++
		}
		if r.Condition == trial.WarmUpName {
			continue
		}
		if r.Row == nil || r.Row.Verdict == event.VerdictUnknown {
			unjudged++
			continue
		}
		slow := r.Row.Verdict == event.VerdictSlow
		switch {
		case !slow && r.Rate() < surelySlow*usualLow:
			missed++
		case slow && r.Rate() > surelyFine*usualHigh:
			invented++
		}
		if slow && r.Row.Leg != "" && r.Row.Leg != v.faulty {
			wrong++
		}
		switch r.Condition {
		case v.control:
			if slow {
				controlSlow++
			}
		case v.strong:
			strongAll++
			if slow {
				strongSlow++
				if r.Row.Leg == "" {
					unnamed++
				}
			}
		}
	}
	_, share := shares(results, v.strong)
	medianShare := 0.0
	if len(share) > 0 {
		medianShare = trial.Median(share)
	}
	return []finding{
		{fmt.Sprintf("every request answered with HTTP 200 (%d of %d)", len(results)-notOK, len(results)), notOK == 0},
		{fmt.Sprintf("every request of the blocks judged (%d not)", unjudged), unjudged == 0},
		{fmt.Sprintf("at %s no request slow (%d were)", v.control, controlSlow), controlSlow == 0},
		{fmt.Sprintf("every request below %.2f of the undisturbed median found (%d missed), none above %.2f (%d)", surelySlow, missed, surelyFine, invented), missed == 0 && invented == 0},
		{fmt.Sprintf("at %s at least %.0f%% slow (%d of %d)", v.strong, 100*wantFound, strongSlow, strongAll), float64(strongSlow) >= wantFound*float64(strongAll) && strongSlow > 0},
		{fmt.Sprintf("no other leg than %s named (%d wrong)", v.faulty, wrong), wrong == 0},
		{fmt.Sprintf("%s named for at least 90%% of the slow ones at %s (%d without a name)", v.faulty, v.strong, unnamed), 10*unnamed <= strongSlow},
		{fmt.Sprintf("its median share of the excess at least %.1f (%.2f)", wantShare, medianShare), medianShare >= wantShare},
	}
}
