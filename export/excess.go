package export

import (
	"github.com/prometheus/client_golang/prometheus"

	"grayfail/event"
	"grayfail/internal/bound"
)

// excessOf adds a slow row's lost time to slow_excess_seconds_total: each
// positive term of its ledger once.
//
//	the leg that the row names         leg=LEG, cause=the row's
//	every leg, when the cause is
//	common_cause                       leg=LEG, cause=common_cause
//	any other leg                      leg=LEG, cause=unattributed
//	the remainder that no leg explains leg="",  cause=local
//
// So the sum over everything is the time lost (but for negative terms of a
// ledger, which are noise and cannot be taken off a counter); the sum by leg
// is what each leg ate; and a path cause never carries another leg's noise.
func (m *Metrics) excessOf(p *pairSeries, r event.Row) {
	for leg, ms := range r.LegsMS {
		cause := event.CauseUnattributed
		switch {
		case r.Leg != "" && leg == r.Leg:
			cause = knownCause(r.Cause)
		case r.Cause == event.CauseCommon:
			cause = event.CauseCommon
		}
		s := m.legs.get(leg)
		s.touch()
		m.addExcess(p, s.name, cause, ms)
	}
	m.addExcess(p, "", event.CauseLocal, r.LocalMS)
}

// maxExpected keeps most room in the excess counter for what happens.
const maxExpected = maxExcessSeries / 4

// expectExcess puts every series that a slow request of a judged pair could
// raise at 0, so that increase() sees the very first one: a single request
// names the leg, and must not be lost to the counter's birth.
func (t *pairTable) expectExcess(legs []legView) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range *t.byName.Load() {
		if !p.judged() {
			continue
		}
		t.expect(p, legCause{"", event.CauseLocal})
		for _, leg := range legs {
			if leg.Role != event.RoleClient {
				continue // never clocked
			}
			for _, cause := range event.Causes {
				if cause.NamesPath() {
					t.expect(p, legCause{leg.name, cause})
				}
			}
		}
	}
}

func (t *pairTable) expect(p *pairSeries, k legCause) {
	if _, ok := p.excess[k]; !ok && t.excessSeries < maxExpected {
		t.newExcess(p, k)
	}
}

func (t *pairTable) newExcess(p *pairSeries, k legCause) prometheus.Counter {
	c := t.m.excess.WithLabelValues(p.source, p.model, k.leg, string(k.cause))
	p.excess[k] = c
	t.excessSeries++
	return c
}

func (m *Metrics) addExcess(p *pairSeries, leg string, cause event.Cause, ms float64) {
	if !finite(ms) || ms <= 0 {
		return
	}
	m.pairs.excessCounter(p, legCause{leg, cause}).Add(ms / 1e3)
}

func (t *pairTable) excessCounter(p *pairSeries, k legCause) prometheus.Counter {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := p.excess[k]; ok {
		return c
	}
	if t.excessSeries >= maxExcessSeries && k.leg != "" {
		t.m.overflow.Add(1)
		k.leg = bound.Other
		if c, ok := p.excess[k]; ok {
			return c
		}
	}
	return t.newExcess(p, k)
}

// forget deletes the excess of a leg under every pair.
func (t *pairTable) forget(leg string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range *t.byName.Load() {
		for k := range p.excess {
			if k.leg == leg {
				delete(p.excess, k)
				t.m.excess.DeleteLabelValues(p.source, p.model, k.leg, string(k.cause))
				t.excessSeries--
			}
		}
	}
}

// knownCause keeps the label to the causes of the contract.
func knownCause(c event.Cause) event.Cause {
	for _, known := range event.Causes {
		if c == known {
			return c
		}
	}
	return event.CauseUnattributed
}
