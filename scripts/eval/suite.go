package main

import (
	"runtime"
	"sync"
	"sync/atomic"

	"grayfail/detector"
	"grayfail/scripts/eval/scenario"
)

// Methods that are compared: ours first, then what it would be without its
// parts.
const (
	ours = iota
	plainWindow
	excluding
	correlation
	naming
	methods
)

var methodNames = [methods]string{
	"grayfail", "plain sliding window of 50", "the same, slow samples excluded",
	"our verdicts, raw rank correlation names", "our verdicts, always the largest share named",
}

// played is one scenario with all its seeds of one half.
type played struct {
	scenario *scenario.Scenario
	by       [methods]figures
	// windows in which the raw correlation was asked where no path is to
	// blame, and blamed one.
	asked, blamed int
	// named counts runs with an episode whose name is right, and none wrong.
	named int
	// erodedAt and slowAt are how many requests went before, in each run of a
	// decay: before the baseline was reported as eroded, before an episode.
	erodedAt, slowAt []int
}

// parallel calls f for 0..n-1 on all cores.
func parallel(n int, f func(i int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		group.Add(1)
		go func() {
			defer group.Done()
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				f(i)
			}
		}()
	}
	group.Wait()
}

// suite plays every scenario with seeds 0..seeds-1. Half of the seeds, the even
// ones, is what thresholds may be set on.
func suite(recordings *scenario.Recordings, seeds int, cfg detector.Config) (even, odd []played) {
	list := scenario.List()
	runs := make([]played, len(list)*seeds)
	parallel(len(runs), func(i int) {
		runs[i] = one(recordings, &list[i/seeds], uint64(i%seeds), cfg)
	})
	even, odd = make([]played, len(list)), make([]played, len(list))
	for i := range runs {
		to := &even[i/seeds]
		if i%seeds%2 == 1 {
			to = &odd[i/seeds]
		}
		to.scenario = &list[i/seeds]
		to.add(&runs[i])
	}
	return even, odd
}

func (p *played) add(o *played) {
	for m := range p.by {
		p.by[m].add(&o.by[m])
	}
	p.asked, p.blamed = p.asked+o.asked, p.blamed+o.blamed
	p.named += o.named
	p.erodedAt, p.slowAt = append(p.erodedAt, o.erodedAt...), append(p.slowAt, o.slowAt...)
}

// one plays one timeline. What is measured is the coordinator's view alone;
// the whole is played too, to see that its answers are the same.
func one(recordings *scenario.Recordings, s *scenario.Scenario, seed uint64, cfg detector.Config) played {
	t := recordings.Make(*s, seed)
	j, whole := play(t, cfg, true), play(t, cfg, false)
	says := j.says(t)
	out := played{scenario: s}
	add := func(m int, says []said, claims []claim) {
		f := measure(s, t, says, claims)
		out.by[m] = f
	}
	claims := j.claims(t)
	add(ours, says, claims)
	out.by[ours].measurePrefill(s, t, j.prefill)
	out.by[ours].Differ = differ(j.rows, whole.rows) + differ(j.prefill, whole.prefill)
	plain, excluded := slidingWindow(t, false), slidingWindow(t, true)
	add(plainWindow, plain, claimsOf(plain))
	add(excluding, excluded, claimsOf(excluded))
	nameless := make([]claim, len(claims))
	for i, c := range claims {
		nameless[i] = claim{first: c.first, last: c.last, judged: c.judged, openedNS: c.openedNS}
	}
	add(correlation, rawCorrelation(t, says), nameless)
	add(naming, j.alwaysName(t, says), nameless)
	if s.Kind != scenario.KindFault {
		out.blamed, out.asked = unasked(t)
	}
	if t.Decay {
		out.erodedAt = append(out.erodedAt, j.erodedAt)
		first := -1
		if len(claims) > 0 {
			first = claims[0].judged
		}
		out.slowAt = append(out.slowAt, first)
	}
	if f := &out.by[ours]; f.EpisodeRight > 0 && f.EpisodeWrong == 0 {
		out.named = 1
	}
	return out
}
