package export

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"grayfail/event"
	"grayfail/internal/bound"
)

// pair is a (source, model): what requests are counted by.
type pair struct{ source, model string }

// pairSeries holds the handles of one pair.
type pairSeries struct {
	pair
	outcomes             []prometheus.Counter // as event.Outcomes
	duration, firstToken prometheus.Observer
	phases               []phaseSeries // as event.Phases
	excess               map[legCause]prometheus.Counter
}

type phaseSeries struct {
	verdicts         []prometheus.Counter // as event.Verdicts
	rate, normalized prometheus.Observer
	// seen says that a row of this phase has come.
	seen atomic.Bool
}

func (p *pairSeries) judged() bool {
	for i := range p.phases {
		if p.phases[i].seen.Load() {
			return true
		}
	}
	return false
}

type legCause struct {
	leg   string
	cause event.Cause
}

// pairTable finds a pair's handles without lock, like legTable. Only names
// that are clean and had room are found that way.
type pairTable struct {
	m               *Metrics
	mu              sync.Mutex // also guards excess of every pair
	sources, models *bound.Names
	excessSeries    int
	byName          atomic.Pointer[map[pair]*pairSeries]
}

func (t *pairTable) init(m *Metrics, sources, models *bound.Names) {
	t.m, t.sources, t.models = m, sources, models
	t.byName.Store(&map[pair]*pairSeries{})
}

func (t *pairTable) overflow() uint64 { return t.sources.Overflow() + t.models.Overflow() }

func (t *pairTable) get(source, model string) *pairSeries {
	if p, ok := (*t.byName.Load())[pair{source, model}]; ok {
		return p
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	name := pair{t.sources.Admit(label(source)), t.models.Admit(label(model))}
	pairs := *t.byName.Load()
	if p, ok := pairs[name]; ok {
		return p
	}
	if everythingElse := (pair{bound.Other, bound.Other}); len(pairs) >= maxPairs && name != everythingElse {
		t.m.overflow.Add(1)
		name = everythingElse
		if p, ok := pairs[name]; ok {
			return p
		}
	}
	p := t.m.newPair(name)
	pairs = maps.Clone(pairs)
	pairs[name] = p
	t.byName.Store(&pairs)
	return p
}

// newPair makes every series of a pair at 0: a first event is then a rise
// that rate() and increase() see, and an alert on slow verdicts finds the
// series before the first one.
func (m *Metrics) newPair(name pair) *pairSeries {
	p := &pairSeries{
		pair:       name,
		duration:   m.duration.WithLabelValues(name.source, name.model),
		firstToken: m.firstToken.WithLabelValues(name.source, name.model),
		phases:     make([]phaseSeries, len(event.Phases)),
		excess:     make(map[legCause]prometheus.Counter),
	}
	for _, o := range event.Outcomes {
		p.outcomes = append(p.outcomes, m.outcomes.WithLabelValues(name.source, name.model, string(o)))
	}
	for i, phase := range event.Phases {
		s := &p.phases[i]
		for _, v := range event.Verdicts {
			s.verdicts = append(s.verdicts, m.verdicts.WithLabelValues(name.source, name.model, string(phase), string(v)))
		}
		s.rate = m.rate.WithLabelValues(name.source, name.model, string(phase))
		s.normalized = m.normalized.WithLabelValues(name.source, name.model, string(phase))
	}
	for _, c := range event.Causes {
		m.episodes.WithLabelValues(name.source, name.model, string(c))
	}
	return p
}

// Request counts one completed request.
func (m *Metrics) Request(r event.Request) {
	p := m.pairs.get(r.Source, r.Model)
	if i := slices.Index(event.Outcomes, r.Outcome); i >= 0 {
		p.outcomes[i].Inc()
	}
	if r.StartNS > 0 && r.EndNS >= r.StartNS && r.Outcome != event.OutcomeCanceled {
		p.duration.Observe(float64(r.EndNS-r.StartNS) / 1e9)
	}
	if r.StartNS > 0 && r.FirstTokenNS >= r.StartNS {
		p.firstToken.Observe(float64(r.FirstTokenNS-r.StartNS) / 1e9)
	}
}

// Row counts the verdict on one phase of one request.
func (m *Metrics) Row(r event.Row) {
	phase := slices.Index(event.Phases, r.Phase)
	verdict := slices.Index(event.Verdicts, r.Verdict)
	if phase < 0 || verdict < 0 {
		m.overflow.Add(1)
		return
	}
	p := m.pairs.get(r.Source, r.Model)
	s := &p.phases[phase]
	s.seen.Store(true)
	s.verdicts[verdict].Inc()
	if r.Rate != nil && finite(*r.Rate) {
		s.rate.Observe(*r.Rate)
	}
	if r.R != nil && finite(*r.R) {
		observeWithID(s.normalized, *r.R, r.ID)
	}
	if r.Verdict == event.VerdictSlow {
		m.excessOf(p, r)
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// exemplarLabel and its value may have prometheus.ExemplarMaxRunes together;
// client_golang panics beyond them.
const exemplarLabel = "request_id"

func observeWithID(o prometheus.Observer, v float64, id string) {
	e, ok := o.(prometheus.ExemplarObserver)
	if !ok || id == "" {
		o.Observe(v)
		return
	}
	e.ObserveWithExemplar(v, exemplar(id))
}

func exemplar(id string) prometheus.Labels {
	return prometheus.Labels{exemplarLabel: clean(id, prometheus.ExemplarMaxRunes-len(exemplarLabel))}
}
