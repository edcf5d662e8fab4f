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
	correlator   detector.Correlator
	correlations []event.Correlation
	nextRanking  time.Time
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
	wantScores := !time.Now().Before(p.nextRanking)
	baselines, episodes, scores := s.pipe.judged(wantScores)
	if wantScores {
		p.rank(scores)
	}
	snap := &event.Snapshot{
		TimeNS:         time.Now().UnixNano(),
		Legs:           s.pipe.legs.Legs(),
		Qdiscs:         s.sampler.currentQdiscs(),
		RDMA:           s.sampler.lastRDMA.Load(),
		Baselines:      baselines,
		Episodes:       episodes,
		Correlations:   p.correlations,
		Statuses:       s.status.list(),
		Detector:       s.pipe.detectorStats(),
		Intake:         s.intake(),
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

// rankShare bounds what the correlations of many models and legs cost: a
// twentieth of one core.
const rankShare = 20

func (p *publisher) rank(scores []detector.ScoreSet) {
	started := time.Now()
	p.correlations = p.correlator.Update(scores)
	p.nextRanking = started.Add(rankShare * time.Since(started))
}
