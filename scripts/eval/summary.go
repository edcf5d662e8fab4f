package main

import (
	"math"
	"slices"

	"grayfail/scripts/eval/scenario"
)

// summary is what figures come to; null where there is nothing to divide by.
type summary struct {
	Precision        *float64 `json:"precision"`
	Recall           *float64 `json:"recall"`
	F1               *float64 `json:"f1"`
	EpisodePrecision *float64 `json:"episode_precision"`
	EpisodeRecall    *float64 `json:"episode_recall"`
	RightShare       *float64 `json:"right_share_of_named"`
	WrongShare       *float64 `json:"wrong_share_of_named"`
	AbstainedShare   *float64 `json:"abstained_share_of_flagged"`
	DelayRequests    *float64 `json:"slow_requests_until_found_median"`
	DelayRequestsMax *float64 `json:"slow_requests_until_found_worst"`
	DelaySeconds     *float64 `json:"seconds_after_the_third_median"`
	DelaySecondsMax  *float64 `json:"seconds_after_the_third_worst"`
	InTimeShare      *float64 `json:"found_in_time_share"`
	SureRequestsMax  *float64 `json:"surely_slow_requests_until_found_worst"`
	SureSecondsMax   *float64 `json:"seconds_after_the_third_surely_slow_worst"`
}

func (f *figures) summary() summary {
	var s summary
	s.Precision, s.Recall = share(f.Hits, f.Flagged), share(f.Caught, f.Slow)
	if s.Precision != nil && s.Recall != nil && *s.Precision+*s.Recall > 0 {
		s.F1 = rounded(2 * *s.Precision * *s.Recall / (*s.Precision + *s.Recall))
	}
	s.EpisodePrecision, s.EpisodeRecall = share(f.Confirmed, f.Reported), share(f.Found, f.True)
	named := f.Right + f.Wrong
	s.RightShare, s.WrongShare = share(f.Right, named), share(f.Wrong, named)
	s.AbstainedShare = share(f.Abstained, named+f.Abstained)
	s.InTimeShare = share(f.Found-f.Late, f.Found)
	s.DelayRequests, s.DelayRequestsMax = spreadOf(floats(f.delayRequests))
	_, s.SureRequestsMax = spreadOf(floats(f.sureRequests))
	_, s.SureSecondsMax = spreadOf(f.sureSeconds)
	s.DelaySeconds, s.DelaySecondsMax = spreadOf(f.delaySeconds)
	return s
}

func floats(counts []int) (out []float64) {
	for _, n := range counts {
		out = append(out, float64(n))
	}
	return out
}

func spreadOf(v []float64) (median, worst *float64) {
	if len(v) == 0 {
		return nil, nil
	}
	v = slices.Sorted(slices.Values(v))
	return rounded(v[(len(v)-1)/2]), rounded(v[len(v)-1])
}

func share(a, b int) *float64 {
	if b == 0 {
		return nil
	}
	return rounded(float64(a) / float64(b))
}

func rounded(x float64) *float64 {
	x = math.Round(x*10000) / 10000
	return &x
}

// total adds up the figures of a method over scenarios that keep says to take.
func total(all []played, method int, keep func(*scenario.Scenario) bool) (f figures) {
	for i := range all {
		if keep(all[i].scenario) {
			f.add(&all[i].by[method])
		}
	}
	return f
}

// perScenario are the mean shares of right and wrong names over scenarios in
// which a name was given: there no long scenario outweighs the others.
func perScenario(all []played) (right, wrong float64) {
	n := 0.0
	for i := range all {
		f := &all[i].by[ours]
		if named := float64(f.Right + f.Wrong); named > 0 {
			right, wrong, n = right+float64(f.Right)/named, wrong+float64(f.Wrong)/named, n+1
		}
	}
	return right / max(1, n), wrong / max(1, n)
}

func everyKind(*scenario.Scenario) bool { return true }

// pathless scenarios have no path to blame, whatever is slow in them.
func pathless(s *scenario.Scenario) bool {
	return s.Kind == scenario.KindHost || s.Kind == scenario.KindLoad || s.Kind == scenario.KindMix
}
