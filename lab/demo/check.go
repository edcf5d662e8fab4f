package demo

import (
	"fmt"
	"slices"

	"grayfail/lab/trial"
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

// finding is one thing that was checked.
type finding struct {
	what string
	ok   bool
}

// campaign is what was played: conditions without fault and with the strongest,
// and the leg that all faults were on.
type campaign struct {
	control, strong string
	faulty          string
	results         []trial.Result
}

// undisturbed summarises the warm-up and the control.
func (c campaign) undisturbed() (warm, control trial.Line) {
	lines := trial.Summarise(c.results, []string{trial.WarmUpName, c.control})
	return lines[0], lines[1]
}

// unsteady says how the machine disturbed the campaign, or "".
func (c campaign) unsteady() string {
	warm, control := c.undisturbed()
	switch {
	case control.Min < steadyMin*control.Median:
		return fmt.Sprintf("requests without any fault ran at %.0f to %.0f tok/s", control.Min, control.Max)
	case min(warm.Median/control.Median, control.Median/warm.Median) < steadyDrift:
		return fmt.Sprintf("requests without any fault ran at %.0f tok/s at first and at %.0f later (medians)", warm.Median, control.Median)
	}
	return ""
}

// check says whether the exporter did its job.
func (c campaign) check() []finding {
	warm, control := c.undisturbed()
	usual := trial.Usual{Low: min(warm.Median, control.Median), High: max(warm.Median, control.Median)}
	score := func(results []trial.Result) trial.Score { return trial.ScoreOf(results, usual, c.faulty) }
	everything := score(c.results)
	blocks := score(slices.DeleteFunc(slices.Clone(c.results), func(r trial.Result) bool { return r.Condition == trial.WarmUpName }))
	calm, strong := score(trial.Of(c.results, c.control)), score(trial.Of(c.results, c.strong))
	share := 0.0
	if len(strong.Shares) > 0 {
		share = trial.Median(strong.Shares)
	}
	f := func(ok bool, format string, args ...any) finding { return finding{fmt.Sprintf(format, args...), ok} }
	return []finding{
		f(everything.Failed == 0, "every request answered with HTTP 200 (%d of %d)", everything.Requests-everything.Failed, everything.Requests),
		f(blocks.Unjudged == 0, "every request of the blocks judged (%d not)", blocks.Unjudged),
		f(calm.Slow == 0, "at %s no request slow (%d were)", c.control, calm.Slow),
		f(blocks.Missed == 0 && blocks.Invented == 0, "every request below %.2f of the undisturbed median found (%d missed), none above %.2f (%d)",
			trial.SurelySlow, blocks.Missed, trial.SurelyFine, blocks.Invented),
		f(strong.Slow > 0 && float64(strong.Slow) >= wantFound*float64(strong.Requests), "at %s at least %.0f%% slow (%d of %d)",
			c.strong, 100*wantFound, strong.Slow, strong.Requests),
		f(blocks.Wrong == 0, "no other leg than %s named (%d wrong)", c.faulty, blocks.Wrong),
		f(10*strong.Abstained <= strong.Slow, "%s named for at least 90%% of the slow ones at %s (%d without a name)", c.faulty, c.strong, strong.Abstained),
		f(share >= wantShare, "its median share of the excess at least %.1f (%.2f)", wantShare, share),
	}
}
