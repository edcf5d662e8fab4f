package proxy

import (
	"sync"
	"sync/atomic"

	"grayfail/event"
)

// health is what became of the last attempt to reach the upstream.
type health struct {
	mu    sync.Mutex
	tried bool
	last  error // nil: the upstream answered
}

// tally counts what went wrong.
type tally struct {
	errors  atomic.Uint64 // upstream did not answer or broke off
	partial atomic.Uint64 // calls not seen to their end: overflow, undecodable
	panics  atomic.Uint64 // observations that panicked
}

func (h *health) attempt(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried, h.last = true, err
}

func (p *Proxy) unreached(err error) {
	p.health.attempt(err)
	p.tally.errors.Add(1)
}

// Status says how the upstream and the observing fare: Failed while the last
// attempt got no answer; Errors counts those and answers broken off, Lost the
// calls that passed but were not seen to their end.
func (p *Proxy) Status() event.Status {
	h := &p.health
	h.mu.Lock()
	defer h.mu.Unlock()
	s := event.Status{Collector: "requests", Errors: p.tally.errors.Load(), Lost: p.tally.partial.Load()}
	if !h.tried {
		return s
	}
	s.Availability = event.Up
	if p.tally.panics.Load() > 0 {
		s.Availability = event.Degraded
		s.Problems = append(s.Problems, event.Problem{
			Reason: "observer_panic",
			Detail: "proxy " + p.config.Name + ": reading an answer failed by a defect of this program; the answer passed unharmed",
		})
	}
	if h.last != nil {
		s.Availability = event.Failed
		s.Problems = append(s.Problems, event.Problem{
			Reason: "upstream_unreachable",
			Detail: "proxy " + p.config.Name + ": " + h.last.Error() + "; is the inference server running at " + p.config.Upstream.Redacted() + "?",
		})
	}
	return s
}
