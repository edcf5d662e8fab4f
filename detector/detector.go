package detector

import (
	"cmp"
	"math"
	"slices"

	"grayfail/event"
)

// Detector judges requests. Not safe for concurrent use.
type Detector struct {
	cfg    Config
	nowNS  int64
	queue  queue
	store  store
	drops  drops
	fabric fabric
	models map[modelKey]*model
	order  []*model
	strata int
	past   []event.Episode // closed, newest last
	ended  []event.Episode // by Adopt, for the next Output
	slab   slab
	stats  Stats
	// correlator is that of Correlations.
	correlator Correlator
}

type modelKey struct{ source, model string }

// model is what is kept of one model at one source.
type model struct {
	decode, prefill series
	used            uint64 // Stats.Requests at its last request
}

// Stats counts what the detector could not keep or use.
type Stats struct {
	Requests, Canceled, Duplicates uint64
	// Freed models and legs made room for others: the least recently used.
	ModelsFreed, LegsFreed uint64
	// StrataFreed were idle for MaxAge when there was no room for another, or
	// of a fingerprint that is long gone.
	StrataFreed uint64
	// SourcesFreed said how many requests were in flight by their times alone,
	// and made room for others that do.
	SourcesFreed uint64
	// ClientErrors are failed requests without verdict: by their own fault.
	ClientErrors uint64
	// Overflow by table: what did not fit.
	ModelsOverflow, StrataOverflow, LegsOverflow, QueuesOverflow, PortsOverflow, PendingOverflow uint64
	// Ahead counts requests that ended in the future: their times are ignored.
	Ahead uint64
	// EventsAhead were more than an hour in the future, and are lost. Rebased
	// counts steps back of the clock that made the detector start its line of
	// time anew.
	EventsAhead, Rebased uint64
	// Adopted strata: by Adopt or by a new fingerprint.
	Adopted uint64
	// ClockSteps that the caller has told of.
	ClockSteps uint64
	// ExchangesUnusable had no leg or no plausible times, or did not fit.
	ExchangesUnusable uint64
	// SumsLost are 100 ms sums that made room for newer ones.
	SumsLost uint64
	// Now in use.
	Models, Strata, Legs, Queues, Pending, Exchanges int
}

// maxPastEpisodes bounds the closed episodes that are remembered.
const maxPastEpisodes = 256

// New makes a detector; zero fields of c mean the defaults.
func New(c Config) *Detector {
	d := &Detector{}
	d.init(c.withDefaults())
	return d
}

func (d *Detector) init(c Config) {
	d.cfg, d.models = c, make(map[modelKey]*model)
	d.correlator = d.NewCorrelator()
	d.store = store{cfg: &d.cfg, legs: legTable{
		byName: make(map[string]*leg), max: d.cfg.MaxLegs, idleNS: int64(d.cfg.SumSpan), freed: d.forgetLeg,
	}}
}

// NewCorrelator makes one that may run beside the detector, with its settings.
func (d *Detector) NewCorrelator() Correlator {
	return Correlator{Permutations: d.cfg.Permutations, Seed: d.cfg.Seed}
}

// Config returns the thresholds in use.
func (d *Detector) Config() Config { return d.cfg }

// Request takes a completed request. Its end is its event time; a request
// without one counts as ended now.
func (d *Detector) Request(r event.Request) {
	if r.EndNS <= 0 {
		r.EndNS = d.nowNS
	}
	if d.nowNS > 0 && r.EndNS > d.nowNS+maxAheadNS {
		// It would wait for ever. The rate may be right all the same.
		d.stats.Ahead++
		r.StartNS, r.FirstTokenNS, r.EndNS = 0, 0, d.nowNS
	}
	if d.queue.len() >= d.cfg.MaxPending {
		d.stats.PendingOverflow++
		return
	}
	if !d.queue.push(&r) {
		d.stats.Duplicates++
	}
}

// maxAheadNS is how far a request may end in the future: clocks of other hosts
// differ by seconds, not by minutes.
const maxAheadNS = int64(60e9)

// Exchange takes one exchange, or a look at one that is still open: a later
// one with the same leg, socket and send time replaces it.
func (d *Detector) Exchange(e event.Exchange) {
	if !d.ahead(e.SendNS) && !d.ahead(e.SendNS+int64(min(e.Duration, math.MaxInt64/4))) {
		d.store.add(&e)
	}
}

// Retransmit takes one retransmit. What another host saw is ignored: the
// answers must hold from the coordinator's view alone.
func (d *Detector) Retransmit(r event.Retransmit) {
	if r.Side == event.SideWorker || r.TimeNS <= 0 || d.ahead(r.TimeNS) {
		return
	}
	if l := d.store.legs.get(r.Leg); l != nil {
		l.resends.add(resend{r.TimeNS, r.Kind})
	}
}

// Connection takes the end of a connection.
func (d *Detector) Connection(c event.Connection) {
	if c.Established || c.Flow.Role == event.RoleServer || c.EndNS <= 0 || d.ahead(c.EndNS) {
		return
	}
	if l := d.store.legs.get(c.Leg); l != nil {
		l.failed.add(c.EndNS)
	}
}

// Qdisc takes one reading of a queue.
func (d *Detector) Qdisc(q event.Qdisc) {
	if !d.ahead(q.TimeNS) {
		d.drops.read(&q)
	}
}

// Leg takes a change of a leg's transport or device.
func (d *Detector) Leg(c event.LegChange) {
	if d.ahead(c.TimeNS) {
		c.TimeNS = d.nowNS // the change is true all the same
	}
	if l := d.store.legs.get(c.Leg); l != nil {
		l.setTransport(c)
	}
}

// Output is what became known in one step. All of it belongs to the caller.
type Output struct {
	// Rows of the requests judged: decode, then prefill; none for canceled ones.
	Rows []event.Row
	// Requests that were judged, canceled ones too, and the scores of those
	// whose decode phase has an r: only with Config.Verbose.
	Requests       []event.Request
	Scores         []Score
	Opened, Closed []event.Episode
}

func (o *Output) add(more Output) {
	if len(o.Rows) == 0 {
		o.Rows = more.Rows
	} else {
		o.Rows = append(o.Rows, more.Rows...)
	}
	o.Requests, o.Scores = append(o.Requests, more.Requests...), append(o.Scores, more.Scores...)
	o.Opened, o.Closed = append(o.Opened, more.Opened...), append(o.Closed, more.Closed...)
}

// Advance moves event time on and judges every request that ended Hold before.
// Time does not go back by less than a minute; by more it starts anew.
func (d *Detector) Advance(nowNS int64) Output {
	out := Output{Closed: d.ended}
	d.ended = nil
	if nowNS > 0 && nowNS < d.nowNS-maxStepBackNS {
		out.add(d.rebase(nowNS))
	}
	d.nowNS = max(d.nowNS, nowNS)
	d.store.legs.nowNS = d.nowNS
	out.add(d.judgeUntil(d.nowNS - int64(d.cfg.Hold)))
	d.store.calm = !d.suspicious()
	d.store.age(d.nowNS)
	return out
}

// Flush judges everything that waits. Episodes stay open: Episodes still shows
// them, with EndNS 0.
func (d *Detector) Flush() Output { return d.judgeUntil(math.MaxInt64) }

func (d *Detector) judgeUntil(untilNS int64) Output {
	d.stats.Duplicates += uint64(d.queue.settle())
	due := 0
	for due < d.queue.len() && d.queue.at(due).EndNS <= untilNS {
		due++
	}
	if due == 0 {
		return Output{}
	}
	out := Output{Rows: d.slab.rows(2 * due)}
	for range due {
		r := d.queue.pop()
		if d.cfg.Verbose {
			out.Requests = append(out.Requests, *r)
		}
		d.judge(r, &out)
		d.queue.remember(r)
	}
	return out
}

func (d *Detector) suspicious() bool {
	for _, m := range d.order {
		if m.decode.suspicious || m.prefill.suspicious || m.decode.anchored || m.prefill.anchored {
			return true
		}
	}
	return false
}

// model finds the model of a request. Only a request that can be learned from
// makes one, so that names in failed requests, which clients choose, take no
// place. It is nil while there is none.
func (d *Detector) model(r *event.Request, learnable bool) *model {
	key := modelKey{r.Source, r.Model}
	m := d.models[key]
	if m == nil {
		if !learnable {
			return nil
		}
		if len(d.models) >= d.cfg.MaxModels && !d.freeModel() {
			d.stats.ModelsOverflow++
			return nil
		}
		m = &model{
			decode:  newSeries(r.Source, r.Model, event.PhaseDecode),
			prefill: newSeries(r.Source, r.Model, event.PhasePrefill),
		}
		d.models[key] = m
		d.order = append(d.order, m)
	}
	m.used = d.stats.Requests
	return m
}

// freeModel forgets the least recently used model that has no open episode.
func (d *Detector) freeModel() bool {
	at := -1
	for i, m := range d.order {
		if !m.decode.episode.open && !m.prefill.episode.open && (at < 0 || m.used < d.order[at].used) {
			at = i
		}
	}
	if at < 0 {
		return false
	}
	m := d.order[at]
	d.strata -= len(m.decode.strata) + len(m.prefill.strata)
	delete(d.models, modelKey{m.decode.source, m.decode.model})
	d.order = slices.Delete(d.order, at, at+1)
	d.stats.ModelsFreed++
	return true
}

// forgetLeg drops what is kept of a leg outside the table of legs.
func (d *Detector) forgetLeg(l *leg) {
	d.store.turns -= l.turns.n
	for _, m := range d.order {
		for _, s := range []*series{&m.decode, &m.prefill} {
			for _, st := range s.strata {
				st.refs.forget(l)
			}
			s.scores.forget(l)
		}
	}
}

// Adopt makes the coming regime of a model the new normal: its baselines warm
// up again and its episodes end; the next Advance returns them. Requests that
// began before, some of which still wait for their verdict, get none and are
// not learned. An empty source means all sources. It returns how many strata
// changed; each counts it.
func (d *Detector) Adopt(source, model string) int {
	n := 0
	for _, m := range d.order {
		for _, s := range []*series{&m.decode, &m.prefill} {
			if s.model != model || (source != "" && s.source != source) {
				continue
			}
			for _, st := range s.strata {
				st.adopt()
				d.stats.Adopted++
				n++
			}
			for _, st := range s.busiest() {
				s.countAdoption(st.key.concurrency)
			}
			if s.episode.open {
				e := s.episode.abandon()
				d.remember(e)
				d.ended = append(d.ended, e)
			}
			s.suspicious, s.anchored = false, false
			s.adoptedNS = d.nowNS
			s.findings, s.learnedNS = s.findings[:0], s.learnedNS[:0]
			s.episode.reset()
		}
	}
	return n
}

func (d *Detector) remember(e event.Episode) {
	if len(d.past) == maxPastEpisodes {
		d.past = slices.Delete(d.past, 0, 1)
	}
	d.past = append(d.past, e)
}

// Baselines returns the state of every stratum that stands for a concurrency:
// of several contexts the busiest. Ordered by source, model, phase and
// concurrency.
func (d *Detector) Baselines() []event.Baseline {
	oldest := d.nowNS - int64(d.cfg.MaxAge)
	var out []event.Baseline
	for _, m := range d.order {
		for _, s := range []*series{&m.decode, &m.prefill} {
			for _, st := range s.busiest() {
				out = append(out, event.Baseline{
					Source: s.source, Model: s.model, Phase: s.phase, Concurrency: concurrencyLabel(st.key.concurrency),
					Rate: st.baseline(&d.cfg), Anchor: st.anchor, Samples: st.window.len(), LogSigma: st.logSigma(),
					State: st.state(s.episode.open, oldest), Adopted: s.adoptions(st.key.concurrency), Requests: st.requests,
					Eroded: st.eroded(&d.cfg), Fingerprint: s.printName(),
				})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b event.Baseline) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Phase, b.Phase))
	})
	return out
}

// Episodes returns the last episodes, newest last; open ones have EndNS 0.
func (d *Detector) Episodes() []event.Episode {
	out := slices.Clone(d.past)
	for _, m := range d.order {
		for _, s := range []*series{&m.decode, &m.prefill} {
			if s.episode.open {
				out = append(out, s.episode.snapshot())
			}
		}
	}
	slices.SortStableFunc(out, func(a, b event.Episode) int { return cmp.Compare(a.StartNS, b.StartNS) })
	return out
}

// Correlations returns the rank correlations of each model's newest decode
// phases, as Correlator.Update does. They are computed again only when
// something was judged since.
func (d *Detector) Correlations() []event.Correlation { return d.correlator.Update(d.Scores()) }

// Stats returns the counters.
func (d *Detector) Stats() Stats {
	d.stats.Duplicates += uint64(d.queue.settle())
	s := d.stats
	s.LegsFreed = d.store.legs.freedCount
	s.LegsOverflow, s.ExchangesUnusable, s.SumsLost = d.store.legs.overflow, d.store.lostTurns, d.store.lostSlots
	s.Models, s.Strata, s.Legs = len(d.models), d.strata, len(d.store.legs.all)
	s.Queues, s.QueuesOverflow = len(d.drops.queues), d.drops.overflow
	s.PortsOverflow = d.fabric.overflow
	s.SourcesFreed = d.queue.flights.freed
	s.Pending, s.Exchanges = d.queue.len(), d.store.turns
	return s
}
