package detector

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"grayfail/event"
)

// maxEpisodeIDs bounds the request ids that an episode lists; the counts go on.
const maxEpisodeIDs = 1000

// patience is how many times CloseAfter requests without any verdict end an
// episode: the load has moved to a stratum that has no baseline yet.
const patience = 5

// tracker turns verdicts into episodes with hysteresis.
type tracker struct {
	source, model string
	phase         event.Phase

	open bool
	// decided counts verdicts ok and slow; recent holds the slow ones among the
	// last OpenWithin of them, oldest first.
	decided uint64
	recent  []judged
	// okRun counts verdicts ok in a row, calmRun those and unknown ones.
	okRun, calmRun int

	current event.Episode
	// trailing counts requests since the last slow one: not part of the
	// episode if it closes there.
	trailing  int
	lastEndNS int64
	blame     []blame
}

// judged is one verdict as an episode remembers it.
type judged struct {
	// decided is false for verdict unknown.
	decided, slow  bool
	startNS, endNS int64
	id, leg        string
	cause          event.Cause
	excessMS       float64
	serial         uint64 // tracker.decided when it came
}

// blame is the evidence of an episode for one cause and leg.
type blame struct {
	cause    event.Cause
	leg      string
	excessMS float64
	slow     int
}

// transition is what one verdict did.
type transition uint8

const (
	nothing transition = iota
	opened
	closed
	calmed // no episode, and the suspicion is over
)

// observe takes the next verdict of the series.
func (t *tracker) observe(j judged, c *Config) transition {
	if j.slow {
		t.okRun, t.calmRun = 0, 0
	} else {
		t.calmRun++
		if j.decided {
			t.okRun++
		}
	}
	if t.open {
		return t.extend(j, c)
	}
	if !j.decided {
		if t.calmRun == c.CloseAfter {
			return calmed
		}
		return nothing
	}
	t.decided++
	if j.slow {
		j.serial = t.decided
		old := 0
		for old < len(t.recent) && t.recent[old].serial+uint64(c.OpenWithin) <= t.decided {
			old++
		}
		t.recent = append(slices.Delete(t.recent, 0, old), j)
		if len(t.recent) >= c.OpenSlow {
			t.start(c)
			return opened
		}
	}
	if t.calmRun == c.CloseAfter {
		return calmed
	}
	return nothing
}

// start opens an episode that began with the first slow verdict remembered.
func (t *tracker) start(c *Config) {
	first := t.recent[0]
	t.open, t.blame, t.lastEndNS = true, t.blame[:0], 0
	t.current = event.Episode{StartNS: first.startNS, Source: t.source, Model: t.model, Phase: t.phase}
	t.current.ID = episodeID(&t.current)
	before := first.serial - 1
	for _, j := range t.recent {
		t.trailing = int(j.serial - before - 1)
		t.extend(j, c)
		before = j.serial
	}
	t.recent = t.recent[:0]
}

// episodeID is made of what an episode is about and of its start: a replay
// gives the same.
func episodeID(e *event.Episode) string {
	h := fnv.New64a()
	for _, part := range []string{e.Source, e.Model, string(e.Phase)} {
		_, _ = h.Write(append([]byte(part), 0))
	}
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(e.StartNS)))
	return fmt.Sprintf("%016x", h.Sum64())
}

// extend counts one more verdict in and closes the episode after a run of ok.
func (t *tracker) extend(j judged, c *Config) transition {
	t.trailing++
	if !j.slow {
		if t.okRun < c.CloseAfter && t.calmRun < patience*c.CloseAfter {
			return nothing
		}
		t.open = false
		t.current.EndNS = t.lastEndNS
		return closed
	}
	t.current.Requests += t.trailing
	t.current.Slow++
	t.trailing = 0
	t.lastEndNS = max(t.lastEndNS, j.endNS)
	if len(t.current.RequestIDs) < maxEpisodeIDs {
		t.current.RequestIDs = append(t.current.RequestIDs, j.id)
	}
	t.accuse(j)
	return nothing
}

func (t *tracker) accuse(j judged) {
	var b *blame
	for i := range t.blame {
		if t.blame[i].cause == j.cause && t.blame[i].leg == j.leg {
			b = &t.blame[i]
		}
	}
	if b == nil {
		t.blame = append(t.blame, blame{cause: j.cause, leg: j.leg})
		b = &t.blame[len(t.blame)-1]
	}
	b.slow++
	b.excessMS += max(0, j.excessMS)
	t.current.Cause, t.current.Leg = majority(t.blame)
}

// majority is the cause and leg with more than half of the slow requests that
// could be explained, and with a quarter of all; else unattributed.
func majority(all []blame) (event.Cause, string) {
	total, explained, bestAt := 0, 0, -1
	for i, b := range all {
		total += b.slow
		if b.cause == event.CauseUnattributed {
			continue
		}
		explained += b.slow
		if bestAt < 0 || b.slow > all[bestAt].slow || (b.slow == all[bestAt].slow && b.excessMS > all[bestAt].excessMS) {
			bestAt = i
		}
	}
	if bestAt < 0 || 2*all[bestAt].slow <= explained || 4*all[bestAt].slow < total {
		return event.CauseUnattributed, ""
	}
	return all[bestAt].cause, all[bestAt].leg
}

// snapshot copies the current episode.
func (t *tracker) snapshot() event.Episode {
	e := t.current
	e.RequestIDs = append([]string(nil), e.RequestIDs...)
	return e
}

// abandon ends an open episode where it stands.
func (t *tracker) abandon() event.Episode {
	t.open = false
	t.current.EndNS = t.lastEndNS
	return t.snapshot()
}

// reset forgets everything that leads to or belongs to an episode.
func (t *tracker) reset() {
	t.open, t.okRun, t.calmRun = false, 0, 0
	t.recent = t.recent[:0]
}
