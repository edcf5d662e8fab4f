package main

import (
	"context"
	"sync"
	"time"

	"grayfail/detector"
	"grayfail/event"
	"grayfail/export"
)

// publisher assembles what a scrape and the API read: an immutable snapshot,
// made on its own ticker from what each source last said.
type publisher struct {
	server   *server
	metrics  *export.Metrics
	interval time.Duration
	mu       sync.Mutex // snapshots are published in the order of their times
	// correlator keeps what nothing new was judged for; mu is held.
	correlator detector.Correlator
}

func (p *publisher) run(ctx context.Context) {
	p.publish()
	tick := time.NewTicker(p.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			p.publish()
			return
		case <-tick.C:
			p.publish()
		}
	}
}

func (p *publisher) publish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.server
	s.requestsStatus()
	baselines, episodes, scores := s.pipe.judged()
	snap := &event.Snapshot{
		TimeNS:         time.Now().UnixNano(),
		Legs:           s.pipe.legs.Legs(),
		Qdiscs:         s.sampler.currentQdiscs(),
		RDMA:           s.sampler.lastRDMA.Load(),
		Baselines:      baselines,
		Episodes:       episodes,
		Correlations:   p.correlator.Update(scores),
		Statuses:       s.status.list(),
		Detector:       s.pipe.detectorStats(),
		InFlight:       s.inFlight(),
		HostAddresses:  s.pipe.legs.HostAddresses(),
		ConfigReload:   *s.reloaded.Load(),
		SeriesOverflow: s.pipe.overflow(),
	}
	p.metrics.Publish(snap)
	s.pipe.api.Publish(snap)
	s.pipe.log.Statuses(snap.Statuses)
	s.pipe.log.Baselines(snap.Baselines)
}
