package main

import (
	"slices"

	"grayfail/event"
	"grayfail/scripts/eval/scenario"
)

// figures of one method over some timelines. They are counts, so they add up.
type figures struct {
	Runs int `json:"runs"`
	// Requests of decode: Slow by the measured rate where a baseline can exist,
	// Caught of them, Flagged by the method, Hits of those (truly slow, with or
	// without a baseline that can exist, or either answer right).
	Requests int `json:"requests"`
	Slow     int `json:"slow"`
	Caught   int `json:"caught"`
	Flagged  int `json:"flagged"`
	Hits     int `json:"hits"`
	Unknown  int `json:"unknown"`
	// Missed ran below 0.45 and were called ok, Invented above 0.6 and were
	// called slow: no rounding of a baseline explains those.
	Missed   int `json:"missed_below_0.45"`
	Invented int `json:"invented_above_0.6"`
	// Episodes: True by the measured rates, Reported, Confirmed (reported and
	// overlap a true one), Found (true and overlapped by a reported one).
	True      int `json:"true_episodes"`
	Found     int `json:"found_episodes"`
	Reported  int `json:"reported_episodes"`
	Confirmed int `json:"confirmed_episodes"`
	// Names of flagged requests, and of reported episodes.
	Right        int `json:"right"`
	Wrong        int `json:"wrong"`
	Abstained    int `json:"abstained"`
	EpisodeRight int `json:"episode_right"`
	EpisodeWrong int `json:"episode_wrong"`
	// Innocent counts paths named though none is to blame.
	Innocent int `json:"paths_named_without_fault"`
	// Names of slow prefill phases.
	PrefillRight int `json:"prefill_right"`
	PrefillWrong int `json:"prefill_wrong"`
	// Differ counts rows that are other without the worker's lines.
	Differ int `json:"differ_alone"`
	// Late counts found episodes beyond five slow requests or seven seconds
	// after the third.
	Late int `json:"late"`

	// Delays of each found episode, in slow requests and seconds after the
	// third; and the same of those that are surely slow.
	delayRequests, sureRequests []int
	delaySeconds, sureSeconds   []float64
}

func (f *figures) add(o *figures) {
	for _, x := range []struct {
		to   *int
		more int
	}{
		{&f.Runs, o.Runs}, {&f.Requests, o.Requests}, {&f.Slow, o.Slow}, {&f.Caught, o.Caught}, {&f.Flagged, o.Flagged}, {&f.Hits, o.Hits}, {&f.Unknown, o.Unknown},
		{&f.Missed, o.Missed}, {&f.Invented, o.Invented}, {&f.True, o.True}, {&f.Found, o.Found}, {&f.Reported, o.Reported}, {&f.Confirmed, o.Confirmed},
		{&f.Right, o.Right}, {&f.Wrong, o.Wrong}, {&f.Abstained, o.Abstained}, {&f.EpisodeRight, o.EpisodeRight}, {&f.EpisodeWrong, o.EpisodeWrong},
		{&f.PrefillRight, o.PrefillRight}, {&f.PrefillWrong, o.PrefillWrong}, {&f.Innocent, o.Innocent}, {&f.Differ, o.Differ}, {&f.Late, o.Late},
	} {
		*x.to += x.more
	}
	f.delayRequests, f.delaySeconds = append(f.delayRequests, o.delayRequests...), append(f.delaySeconds, o.delaySeconds...)
	f.sureRequests, f.sureSeconds = append(f.sureRequests, o.sureRequests...), append(f.sureSeconds, o.sureSeconds...)
}

// said is what a method says of one request.
type said struct {
	decided, slow bool
	cause         event.Cause
	leg           string
}

// claim is an episode as a method reports it: positions in the order of
// judging, both inclusive, and how many requests were judged when it opened.
type claim struct {
	first, last, judged int
	openedNS            int64 // 0: not known
	cause               event.Cause
	leg                 string
}

// verdictNS is when a request has its verdict at the latest: the hold and a
// turn of the pipeline after its end.
const holdNS = int64(2e9)

// knowable tells which requests can be judged at all: ten of the same
// concurrency went before, or they failed.
func knowable(truths []scenario.Truth) []bool {
	seen := make(map[int]int)
	out := make([]bool, len(truths))
	for i := range truths {
		b := scenario.Bucket(truths[i].InFlight)
		out[i] = seen[b] >= 10 || truths[i].Failed
		if !truths[i].Failed {
			seen[b]++
		}
	}
	return out
}

// grade of a name.
type grade int

const (
	right grade = iota
	wrong
	abstained
)

// What the fault must hold of the lost time: from decided on, only its name is
// right; below heard, which is what the design examines a leg from, no name is;
// between them either.
const (
	decided = 0.5
	heard   = 0.25
)

// nobody are the answers that blame no path.
var nobody = []scenario.Answer{{Cause: event.CauseCommon}, {Cause: event.CauseLocal}}

// accepted are the right answers for one request.
func accepted(t *scenario.Timeline, truth *scenario.Truth) []scenario.Answer {
	switch {
	case truth.FaultShare >= decided:
		return t.Accept
	case truth.FaultShare >= heard:
		return append(slices.Clone(t.Accept), nobody...)
	}
	return nobody
}

func gradeOf(accept []scenario.Answer, cause event.Cause, leg string) grade {
	switch {
	case slices.Contains(accept, scenario.Answer{Cause: cause, Leg: leg}):
		return right
	case leg == "" && (cause == event.CauseUnattributed || cause == event.CauseCommon):
		return abstained
	}
	return wrong
}

// measure compares what a method said of a timeline with its truth.
func measure(s *scenario.Scenario, t *scenario.Timeline, says []said, claims []claim) figures {
	f := figures{Runs: 1, Requests: len(t.Truths)}
	known := knowable(t.Truths)
	for i := range t.Truths {
		truth, say := &t.Truths[i], &says[i]
		if truth.Slow() && known[i] {
			f.Slow++
			if say.slow {
				f.Caught++
			}
			if say.decided && !say.slow && (truth.Failed || truth.R < surely) {
				f.Missed++
			}
		}
		if !say.decided {
			f.Unknown++
		}
		if !say.slow {
			continue
		}
		f.Flagged++
		if truth.MaySlow() {
			f.Hits++
		} else if truth.R > never {
			f.Invented++
		}
		if say.cause == "" {
			continue
		}
		switch gradeOf(accepted(t, truth), say.cause, say.leg) {
		case right:
			f.Right++
		case wrong:
			f.Wrong++
		case abstained:
			f.Abstained++
		}
		if say.leg != "" && (s.Kind == scenario.KindHost || s.Kind == scenario.KindLoad || s.Kind == scenario.KindMix || truth.FaultShare < heard) {
			f.Innocent++
		}
	}
	f.compareEpisodes(t, known, claims)
	return f
}

// measurePrefill grades the paths that slow prefill phases name.
func (f *figures) measurePrefill(s *scenario.Scenario, t *scenario.Timeline, rows []event.Row) {
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Verdict != event.VerdictSlow || r.Leg == "":
		case s.Kind == scenario.KindFault && gradeOf(t.Accept, r.Cause, r.Leg) == right:
			f.PrefillRight++
		default:
			f.PrefillWrong++
			if pathless(s) {
				f.Innocent++
			}
		}
	}
}

// compareEpisodes matches what was reported with the episodes of the truth.
func (f *figures) compareEpisodes(t *scenario.Timeline, known []bool, claims []claim) {
	may := func(i int) bool { return known[i] }
	truly := episodes(len(t.Truths), may, func(i int) bool { return t.Truths[i].Slow() })
	loosely := episodes(len(t.Truths), may, func(i int) bool { return t.Truths[i].MaySlow() })
	f.Reported, f.True = len(claims), len(truly)
	for i := range claims {
		c := &claims[i]
		if slices.ContainsFunc(loosely, func(x claim) bool { return x.first <= c.last && c.first <= x.last }) {
			f.Confirmed++
		}
		if c.cause == "" {
			continue
		}
		// The truth of an episode is that of most of its slow requests.
		byFault, slow := 0, 0
		for _, truth := range t.Truths[c.first : c.last+1] {
			if truth.MaySlow() {
				if slow++; truth.FaultShare >= decided {
					byFault++
				}
			}
		}
		accept := t.Accept
		if 2*byFault < slow {
			accept = accepted(t, &scenario.Truth{})
		}
		switch gradeOf(accept, c.cause, c.leg) {
		case right:
			f.EpisodeRight++
		case wrong:
			f.EpisodeWrong++
		}
	}
	for _, x := range truly {
		at := slices.IndexFunc(claims, func(c claim) bool { return x.first <= c.last && c.first <= x.last })
		if at < 0 {
			continue
		}
		f.Found++
		c := &claims[at]
		late := false
		delay := func(is func(*scenario.Truth) bool, requests *[]int, seconds *[]float64) {
			slow, third := 0, int64(0)
			for i := x.first; i < len(t.Truths) && (i < c.judged || slow < 3); i++ {
				if is(&t.Truths[i]) {
					if slow++; slow == 3 {
						third = t.Truths[i].EndNS
					}
				}
			}
			*requests = append(*requests, slow)
			late = slow > 5
			if c.openedNS > 0 && third > 0 {
				after := max(0, float64(c.openedNS-third)/1e9)
				*seconds = append(*seconds, after)
				late = late || after > 7
			}
		}
		delay(func(x *scenario.Truth) bool { return x.Failed || x.R < surely }, &f.sureRequests, &f.sureSeconds)
		delay((*scenario.Truth).Slow, &f.delayRequests, &f.delaySeconds)
		if late {
			f.Late++
		}
	}
}
