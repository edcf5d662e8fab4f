package proxy

import (
	"sync"

	"grayfail/event"
)

// health counts what went wrong; the last attempt decides the state.
type health struct {
	mu      sync.Mutex
	tried   bool
	last    error  // nil: the upstream answered
	errors  uint64 // upstream did not answer or broke off
	partial uint64 // calls not seen to their end: overflow, undecodable
	panics  uint64 // observations that panicked
}

func (h *health) reached() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried, h.last = true, nil
}

func (h *health) unreached(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried, h.last = true, err
	h.errors++
}

// cut counts an answer that the upstream broke off.
func (h *health) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errors++
}

func (h *health) unseen(panicked bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.partial++
	if panicked {
		h.panics++
	}
}

// Status says how the upstream and the observing fare: Failed while the last
// attempt got no answer; Errors counts those and answers broken off, Lost the
// calls that passed but were not seen to their end.
func (p *Proxy) Status() event.Status {
	h := &p.health
	h.mu.Lock()
	defer h.mu.Unlock()
	s := event.Status{Collector: "requests", Errors: h.errors, Lost: h.partial}
	if !h.tried {
		return s
	}
	s.Availability = event.Up
	if h.panics > 0 {
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
