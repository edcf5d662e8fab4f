package export

import (
	"cmp"
	"slices"

	"grayfail/event"
	"grayfail/internal/bound"
)

func (b *builder) inFlight(sources []event.InFlight) {
	sums := make(map[pair]int)
	for _, s := range sources { // several may be under "other"
		sums[b.m.pairs.get(s.Source, s.Model).pair] += s.Requests
	}
	for p, n := range sums {
		b.gauge(requestsInFlight, float64(n), p.source, p.model)
	}
}

// named returns the name of a pair's series; ok is false where it has none of
// its own, and a reading that cannot be added to others has no place.
func (m *Metrics) named(source, model string) (pair, bool) {
	p := m.pairs.get(source, model).pair
	return p, p.source == label(source) && p.model == label(model)
}

func (b *builder) baselines(all []event.Baseline) {
	groups := make(map[phaseKey][]*event.Baseline)
	for i := range all {
		if p, ok := b.m.named(all[i].Source, all[i].Model); ok {
			k := phaseKey{p, all[i].Phase}
			groups[k] = append(groups[k], &all[i])
		}
	}
	for k, strata := range groups {
		if b.m.strata {
			for _, s := range strata {
				b.baseline(s, s.Adopted, k.source, k.model, string(k.phase), s.Concurrency)
			}
			continue
		}
		// Which stratum is the busiest may change; the counter must not fall.
		var adopted uint64
		for _, s := range strata {
			adopted += s.Adopted
		}
		b.baseline(busiest(strata), adopted, k.source, k.model, string(k.phase))
	}
}

func busiest(strata []*event.Baseline) *event.Baseline {
	return slices.MaxFunc(strata, func(x, y *event.Baseline) int {
		return cmp.Or(
			cmp.Compare(x.Requests, y.Requests),
			cmp.Compare(x.Samples, y.Samples),
			cmp.Compare(y.Concurrency, x.Concurrency))
	})
}

// baseline leaves out what a stratum does not have yet: a rate of 0 would be a
// baseline.
func (b *builder) baseline(s *event.Baseline, adopted uint64, labels ...string) {
	with := func(more ...string) []string { return append(slices.Clone(labels), more...) }
	if s.Rate > 0 {
		b.gauge(baselineRate, s.Rate, with()...)
	}
	if s.Anchor > 0 {
		b.gauge(baselineAnchor, s.Anchor, with()...)
	}
	if s.Samples > 1 {
		b.gauge(baselineLogSigma, s.LogSigma, with()...)
	}
	b.gauge(baselineSamples, float64(s.Samples), with()...)
	b.counter(baselineAdopted, adopted, with()...)
	b.gauge(baselineEroded, boolean(s.Eroded), with()...)
	oneHot(b, baselineState, event.BaselineStates, s.State, func(state event.BaselineState) []string {
		return with(string(state))
	})
}

func (b *builder) episodes(phases []phaseKey, episodes []event.Episode) {
	type causeKey struct {
		pair
		cause event.Cause
		leg   string
	}
	open := make(map[phaseKey]bool)
	causes := make(map[causeKey]bool)
	for i := range episodes {
		e := &episodes[i]
		p := b.m.pairs.get(e.Source, e.Model).pair
		isOpen := e.EndNS == 0
		if isOpen {
			open[phaseKey{p, e.Phase}] = true
		}
		leg := ""
		if e.Leg != "" {
			leg = b.m.legs.peek(e.Leg)
		}
		k := causeKey{p, knownCause(e.Cause), leg}
		causes[k] = causes[k] || isOpen
	}
	for _, k := range phases {
		b.gauge(episodeActive, boolean(open[k]), k.source, k.model, string(k.phase))
	}
	for k, active := range causes {
		b.gauge(episodeCause, boolean(active), k.source, k.model, string(k.cause), k.leg)
	}
}

func (b *builder) correlations(all []event.Correlation) {
	models := make(map[string]bool)
	for _, p := range *b.m.pairs.byName.Load() {
		models[p.model] = true
	}
	for i := range all {
		c := &all[i]
		leg := b.m.legs.peek(c.Leg)
		if !finite(c.Rho) || !finite(c.PValue) {
			continue // all values alike: there is no rank to compare
		}
		if !models[label(c.Model)] || leg == bound.Other {
			b.m.overflow.Add(1)
			continue
		}
		labels := b.labels(rankCorrelation, []string{c.Model, leg, c.Evidence})
		b.put(rankCorrelation, c.Rho, labels)
		b.put(rankCorrelationP, c.PValue, labels)
		b.put(rankCorrelationN, float64(c.N), labels)
		if finite(c.FamilyPValue) && c.FamilyPValue > 0 {
			b.put(rankCorrelationFamilyP, c.FamilyPValue, labels)
		}
	}
}
