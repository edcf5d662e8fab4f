package export

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"grayfail/event"
	"grayfail/internal/bound"
)

// legSeries holds the handles of one leg. They are made when there is
// something to count: a server-role leg is never clocked, and a histogram that
// stays empty would say that nothing was slow.
type legSeries struct {
	name        string
	clock       atomic.Pointer[clockSeries]
	connection  atomic.Pointer[prometheus.Observer]
	retransmits atomic.Pointer[[]prometheus.Counter] // as event.RetransmitKinds

	// touched is set by events and cleared by Publish.
	touched atomic.Bool

	// The rest belongs to Publish.
	lastNS          int64 // last in a snapshot, or touched
	fallback        bool  // at the snapshot before
	fallbackSeconds float64
}

type clockSeries struct{ exchange, stall prometheus.Observer }

// legTable finds a leg's handles by name without lock or allocation. Writers
// copy the map: there are at most max of them in a run without Forget.
type legTable struct {
	m      *Metrics
	max    int
	mu     sync.Mutex
	byName atomic.Pointer[map[string]*legSeries]
}

func (t *legTable) init(m *Metrics, max int) {
	t.m, t.max = m, max
	other := map[string]*legSeries{bound.Other: {name: bound.Other}}
	t.byName.Store(&other)
}

// get returns the handles of a leg, or those of "other" where there is no room
// or the event carries no name. Names that need cleaning take the slow way
// every time: any number of them may become one clean name.
func (t *legTable) get(name string) *legSeries {
	if s, ok := (*t.byName.Load())[name]; ok {
		return s
	}
	return t.admit(name)
}

func (t *legTable) admit(name string) *legSeries {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.admitLocked(name)
}

func (t *legTable) admitLocked(name string) *legSeries {
	legs := *t.byName.Load()
	name = label(name)
	if name == "" {
		return legs[bound.Other]
	}
	if s, ok := legs[name]; ok {
		return s
	}
	if len(legs) > t.max { // "other" does not count
		t.m.overflow.Add(1)
		return legs[bound.Other]
	}
	s := &legSeries{name: name}
	legs = maps.Clone(legs)
	legs[name] = s
	t.byName.Store(&legs)
	return s
}

// peek gives the name that a leg has or would have, without giving it room: a
// scrape must not bring back a leg that has been forgotten.
func (t *legTable) peek(name string) string {
	legs := *t.byName.Load()
	name = label(name)
	if _, known := legs[name]; known || name != "" && len(legs) <= t.max {
		return name
	}
	return bound.Other
}

// clockOf makes the handles of the exchange clock. It looks the leg up again
// under the lock: s may have been forgotten since.
func (t *legTable) clockOf(s *legSeries) *clockSeries {
	if c := s.clock.Load(); c != nil {
		return c
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s = t.admitLocked(s.name)
	if s.clock.Load() == nil {
		s.clock.Store(&clockSeries{
			exchange: t.m.exchange.WithLabelValues(s.name),
			stall:    t.m.stall.WithLabelValues(s.name),
		})
	}
	return s.clock.Load()
}

func (t *legTable) connectionOf(s *legSeries) prometheus.Observer {
	if c := s.connection.Load(); c != nil {
		return *c
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s = t.admitLocked(s.name)
	if s.connection.Load() == nil {
		c := t.m.connection.WithLabelValues(s.name)
		s.connection.Store(&c)
	}
	return *s.connection.Load()
}

// retransmitsOf makes the counters of every kind at once, so that the first
// retransmit of a kind is a rise from 0 that rate() sees.
func (t *legTable) retransmitsOf(s *legSeries) []prometheus.Counter {
	if c := s.retransmits.Load(); c != nil {
		return *c
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s = t.admitLocked(s.name)
	if s.retransmits.Load() == nil {
		kinds := make([]prometheus.Counter, 0, len(event.RetransmitKinds))
		for _, k := range event.RetransmitKinds {
			kinds = append(kinds, t.m.retransmits.WithLabelValues(s.name, string(k)))
		}
		s.retransmits.Store(&kinds)
	}
	return *s.retransmits.Load()
}

func (s *legSeries) touch() {
	if !s.touched.Load() { // a shared cache line is only written when it must
		s.touched.Store(true)
	}
}

// Exchange observes one ended exchange. Looks at open ones and turns without a
// reply are left out: their duration is not known yet, or never.
func (m *Metrics) Exchange(x *event.Exchange) {
	if x.Open || x.ReplyBytes == 0 || x.Duration < 0 || x.Stall < 0 {
		return
	}
	s := m.legs.get(x.Leg)
	s.touch()
	c := m.legs.clockOf(s)
	c.exchange.Observe(x.Duration.Seconds())
	c.stall.Observe(x.Stall.Seconds())
}

// Retransmit counts one retransmitted buffer.
func (m *Metrics) Retransmit(r *event.Retransmit) {
	i := slices.Index(event.RetransmitKinds, r.Kind)
	if i < 0 {
		m.overflow.Add(1)
		return
	}
	s := m.legs.get(r.Leg)
	s.touch()
	if !m.retransmitSeen.Load() {
		m.retransmitSeen.Store(true)
	}
	m.legs.retransmitsOf(s)[i].Inc()
}

// Connection observes the life span of a connection that was established.
// Handshakes that failed have none.
func (m *Metrics) Connection(c *event.Connection) {
	if !c.Established || c.StartNS <= 0 || c.EndNS < c.StartNS {
		return
	}
	s := m.legs.get(c.Leg)
	s.touch()
	m.legs.connectionOf(s).Observe(float64(c.EndNS-c.StartNS) / 1e9)
}

// Forget deletes every series of a leg that is gone for good, and makes room
// for another. Legs that no snapshot holds are forgotten after
// Options.ForgetAfter anyway.
func (m *Metrics) Forget(leg string) {
	leg = label(leg)
	if leg == "" || leg == bound.Other {
		return
	}
	t := &m.legs
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := (*t.byName.Load())[leg]; ok {
		legs := maps.Clone(*t.byName.Load())
		delete(legs, leg)
		t.byName.Store(&legs)
	}
	of := prometheus.Labels{"leg": leg}
	for _, vec := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{m.exchange, m.stall, m.connection, m.retransmits} {
		vec.DeletePartialMatch(of)
	}
	m.pairs.forget(leg)
}
