package export

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"grayfail/event"
	"grayfail/internal/bound"
)

// view is one published snapshot with what depends on the snapshots before it.
// Its metrics are built by the first scrape that wants them: sampling is more
// frequent than scraping, and a thousand qdiscs are 7,000 series.
type view struct {
	snapshot *event.Snapshot
	legs     []legView
	phases   []phaseKey // every phase judged so far

	build   sync.Once
	metrics []prometheus.Metric
}

// legView is a leg under the name of its series.
type legView struct {
	*event.Leg
	name            string
	fallbackSeconds float64
}

// phaseKey is what an episode is about.
type phaseKey struct {
	pair
	phase event.Phase
}

// maxTick bounds what one interval between snapshots adds to
// leg_fallback_seconds_total: a longer one is a clock that was set, or a host
// that slept.
const maxTick = int64(60e9)

// Publish makes s what the next scrape sees. The caller must not write to s or
// to anything it points to afterwards. Snapshots come in the order of their
// times; a step back of the clock loses one interval of fallback time, no more.
func (m *Metrics) Publish(s *event.Snapshot) {
	if s == nil {
		return
	}
	m.publish.Lock()
	defer m.publish.Unlock()

	v := &view{snapshot: s, legs: make([]legView, 0, len(s.Legs))}
	var elapsed int64
	if before := m.view.Load(); before != nil {
		elapsed = min(s.TimeNS-before.snapshot.TimeNS, maxTick)
	}
	eventsWork := m.retransmitsAreSeen(s.Statuses)
	present := make(map[*legSeries]bool, len(s.Legs))
	for i := range s.Legs {
		leg := &s.Legs[i]
		series := m.legs.get(leg.Name)
		// No room, or two legs of one name: neither transport nor RTT can be
		// told for both at once. A leg that a full table upstream has named
		// "other" is shown as it is.
		if series.name == bound.Other && label(leg.Name) != bound.Other || present[series] {
			if series.name != bound.Other {
				m.overflow.Add(1) // a twin; a full table has been counted by get
			}
			continue
		}
		present[series] = true
		if eventsWork {
			m.legs.retransmitsOf(series)
		}
		if series.fallback && elapsed > 0 {
			series.fallbackSeconds += float64(elapsed) / 1e9
		}
		series.fallback = fellBack(leg)
		v.legs = append(v.legs, legView{leg, series.name, series.fallbackSeconds})
	}
	m.age(s.TimeNS, present)
	m.pairs.expectExcess(v.legs)
	v.phases = m.judgedPhases(s)
	m.view.Store(v)
}

// retransmitsAreSeen says whether a leg without retransmit event has had none,
// so that its counters may stand at 0. While the collector is degraded the
// retransmit hook may be what is missing, unless it has given something.
func (m *Metrics) retransmitsAreSeen(statuses []event.Status) bool {
	for i := range statuses {
		if statuses[i].Collector != "tcp_events" {
			continue
		}
		switch statuses[i].Availability {
		case event.Up:
			return true
		case event.Degraded:
			return m.retransmitSeen.Load()
		}
	}
	return false
}

// age forgets legs that no snapshot has held for long and that have no events.
func (m *Metrics) age(nowNS int64, present map[*legSeries]bool) {
	for name, s := range *m.legs.byName.Load() {
		touched := s.touched.Swap(false)
		switch {
		case touched, present[s], s.lastNS == 0, s.lastNS > nowNS:
			s.lastNS = nowNS
		case nowNS-s.lastNS > m.forgetAfter:
			m.Forget(name)
		}
		if !present[s] {
			s.fallback = false
		}
	}
}

// judgedPhases lists every phase that had a row since the start or has a
// baseline or an episode now: each has an episode_active, 0 or 1.
func (m *Metrics) judgedPhases(s *event.Snapshot) []phaseKey {
	seen := make(map[phaseKey]bool)
	var out []phaseKey
	add := func(k phaseKey) {
		if !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	for i := range s.Baselines {
		b := &s.Baselines[i]
		add(phaseKey{m.pairs.get(b.Source, b.Model).pair, b.Phase})
	}
	for i := range s.Episodes {
		e := &s.Episodes[i]
		add(phaseKey{m.pairs.get(e.Source, e.Model).pair, e.Phase})
	}
	for _, p := range *m.pairs.byName.Load() {
		for i, phase := range event.Phases {
			if p.phases[i].seen.Load() {
				add(phaseKey{p.pair, phase})
			}
		}
	}
	return out
}
