package main

import (
	"context"
	"sync"
	"time"

	"grayfail/collector/legs"
	"grayfail/detector"
	"grayfail/ebpf"
	"grayfail/event"
	"grayfail/export"
)

const (
	// drainInterval: waking user space for each event cost 7.6% of the token
	// rate, reading every 100 ms costs nothing that could be measured.
	drainInterval = 100 * time.Millisecond
	// hurriedInterval is the least, for rates at which the ring would be full
	// before drainInterval has passed: it holds 62,000 exchanges a second.
	hurriedInterval = 10 * time.Millisecond
	// openInterval is how often exchanges that have not ended are looked at.
	openInterval = 500 * time.Millisecond
	// flushInterval is how much of a recording a kill can cost.
	flushInterval = time.Second
	// maxQueue bounds requests and readings that wait for the next turn.
	maxQueue = 100_000
)

// pipeline carries events from the sources to the detector and what it says to
// the exporters. One goroutine runs it; sources hand over through queues.
type pipeline struct {
	probes  *ebpf.Probes
	legs    *legs.Table
	metrics *export.Metrics
	log     *export.Log
	api     *export.API
	rec     *recorder
	status  *statuses
	now     func() time.Time

	mu      sync.Mutex // guards what follows
	det     *detector.Detector
	queue   []event.Record // requests, qdiscs, leg changes, RDMA counters
	dropped uint64

	events    ebpf.Events
	taken     int // out of the ring by the last drain
	lastTurn  time.Time
	lastOpen  time.Time
	lastFlush time.Time
}

// submit queues a record for the next turn. Safe for concurrent use.
func (p *pipeline) submit(r event.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) >= maxQueue {
		p.dropped++
		return
	}
	p.queue = append(p.queue, r)
}

func (p *pipeline) submitRequest(r event.Request) { p.submit(&r) }

// run turns until ctx ends; then it judges what still waits.
func (p *pipeline) run(ctx context.Context) {
	next := time.NewTimer(drainInterval)
	defer next.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			p.turn(p.now())
			p.mu.Lock()
			out := p.det.Flush()
			p.mu.Unlock()
			p.publish(out)
			p.rec.flush()
			return
		case <-next.C:
			p.turn(p.now())
			next.Reset(pace(p.taken, time.Since(last)))
			last = time.Now()
		}
	}
}

// pace is the time until the next turn: at the rate of the last one, taken in
// the time since the one before, an eighth of the ring may fill meanwhile: on
// cores that are busy a turn comes late.
func pace(taken int, since time.Duration) time.Duration {
	if taken == 0 {
		return drainInterval
	}
	return min(drainInterval, max(hurriedInterval, since*(ebpf.RingExchanges/8)/time.Duration(taken)))
}

// turn takes everything that arrived since the last one, events first: a
// request is judged by what the kernel saw up to its end.
func (p *pipeline) turn(now time.Time) {
	p.drain(now)
	p.take(now)
}

// take hands what was drained and queued to everybody who wants it.
func (p *pipeline) take(now time.Time) {
	p.mu.Lock()
	queue := p.queue
	p.queue = nil
	p.mu.Unlock()

	p.name()
	for i := range p.events.Exchanges {
		e := &p.events.Exchanges[i]
		p.metrics.Exchange(e)
		p.rec.write(e)
	}
	for i := range p.events.Retransmits {
		r := &p.events.Retransmits[i]
		p.metrics.Retransmit(r)
		p.rec.write(r)
	}
	for i := range p.events.Connections {
		c := &p.events.Connections[i]
		p.metrics.Connection(c)
		p.legs.Connection(*c)
		p.rec.write(c)
	}
	for _, r := range queue {
		if req, ok := r.(*event.Request); ok {
			p.metrics.Request(*req)
		}
		p.rec.write(r)
	}

	if now.Sub(p.lastFlush) >= flushInterval {
		p.lastFlush = now
		p.rec.flush()
	}

	p.mu.Lock()
	moved := p.followClock(now)
	p.feed(queue)
	out := p.det.Advance(now.UnixNano())
	p.mu.Unlock()
	p.publish(moved)
	p.publish(out)
}

// clockStep is the least by which a clock was set, rather than slewed.
const clockStep = time.Minute

// followClock tells the detector when the clock was set, or the host slept,
// since the last turn: Go's monotonic clock stands still in both. p.mu is held.
func (p *pipeline) followClock(now time.Time) (out detector.Output) {
	if !p.lastTurn.IsZero() {
		step := time.Duration(now.UnixNano()-p.lastTurn.UnixNano()) - now.Sub(p.lastTurn)
		if step.Abs() >= clockStep {
			out = p.det.ClockStep(int64(step))
		}
	}
	p.lastTurn = now
	return out
}

// name gives each event its leg and drops those of flows that the
// configuration asks no leg for (a reload may have just removed it).
func (p *pipeline) name() {
	ev := &p.events
	ev.Exchanges = named(ev.Exchanges, func(e *event.Exchange) bool { e.Leg = p.legs.Name(e.Flow); return e.Leg != "" })
	ev.Retransmits = named(ev.Retransmits, func(r *event.Retransmit) bool { r.Leg = p.legs.Name(r.Flow); return r.Leg != "" })
	ev.Connections = named(ev.Connections, func(c *event.Connection) bool { c.Leg = p.legs.Name(c.Flow); return c.Leg != "" })
}

func named[T any](events []T, name func(*T) bool) []T {
	kept := events[:0]
	for i := range events {
		if name(&events[i]) {
			kept = append(kept, events[i])
		}
	}
	return kept
}

func (p *pipeline) drain(now time.Time) {
	p.events.Reset()
	if !p.probes.Available() {
		return
	}
	started := time.Now()
	err := p.probes.Drain(&p.events)
	p.taken = len(p.events.Exchanges) + len(p.events.Retransmits) + len(p.events.Connections)
	if err == nil && now.Sub(p.lastOpen) >= openInterval {
		p.lastOpen = now
		err = p.probes.Open(&p.events)
	}
	p.status.eventsTried(time.Since(started), p.probes.Lost(), err)
}

// feed hands one turn's events to the detector; p.mu is held.
func (p *pipeline) feed(queue []event.Record) {
	for i := range p.events.Exchanges {
		p.det.Exchange(p.events.Exchanges[i])
	}
	for i := range p.events.Retransmits {
		p.det.Retransmit(p.events.Retransmits[i])
	}
	for i := range p.events.Connections {
		p.det.Connection(p.events.Connections[i])
	}
	for _, r := range queue {
		switch r := r.(type) {
		case *event.Request:
			p.det.Request(*r)
		case *event.Qdisc:
			p.det.Qdisc(*r)
		case *event.LegChange:
			p.det.Leg(*r)
		case *event.RDMAStep:
			p.det.RDMA(*r)
		}
	}
}

func (p *pipeline) publish(out detector.Output) {
	for _, row := range out.Rows {
		p.metrics.Row(row)
		p.log.Row(row)
		p.api.AddRow(row)
	}
	for _, e := range out.Opened {
		p.metrics.EpisodeOpened(e)
		p.log.EpisodeOpened(e)
	}
	for _, e := range out.Closed {
		p.log.EpisodeClosed(e)
	}
}

// lost counts records that found the queue full.
func (p *pipeline) lost() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped + p.det.Stats().PendingOverflow
}

// overflow counts names that found a table full.
func (p *pipeline) overflow() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := p.det.Stats()
	return p.legs.Overflow() + st.ModelsOverflow + st.StrataOverflow + st.LegsOverflow + st.PortsOverflow + st.QueuesOverflow
}

// judged returns what the detector has to show beyond rows. The scores, where
// they are wanted, are for a correlator, which would hold up the judge.
func (p *pipeline) judged(wantScores bool) (baselines []event.Baseline, episodes []event.Episode, scores []detector.ScoreSet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wantScores {
		scores = p.det.Scores()
	}
	return p.det.Baselines(), p.det.Episodes(), scores
}

// adopt makes the current regime the baseline of a model; it returns how many
// strata changed.
func (p *pipeline) adopt(source, model string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.det.Adopt(source, model)
}
