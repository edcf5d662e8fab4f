package proxy

import (
	"sync"
	"time"
)

// flight knows which calls are in flight, and how many were over any span.
type flight struct {
	mu    sync.Mutex
	calls map[*call]struct{}
	// area is the integral of the number of calls over time since the start,
	// in call-nanoseconds. It may wrap: only differences are used.
	area uint64
	at   time.Time
}

func newFlight(now time.Time) *flight {
	return &flight{calls: make(map[*call]struct{}), at: now}
}

// advance brings area to now. Clocks read by several goroutines arrive out of
// order: time never goes back.
func (f *flight) advance(now time.Time) {
	if elapsed := now.Sub(f.at); elapsed > 0 {
		f.area += uint64(elapsed) * uint64(len(f.calls))
		f.at = now
	}
}

// enter returns the area when the call began.
func (f *flight) enter(c *call, now time.Time) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance(now)
	f.calls[c] = struct{}{}
	return f.area
}

// leave returns the time-weighted number of calls in flight while c was, c
// included.
func (f *flight) leave(c *call, now time.Time) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance(now)
	delete(f.calls, c)
	span := now.Sub(c.start)
	if span <= 0 {
		return float64(len(f.calls) + 1)
	}
	return max(1, float64(f.area-c.area)/float64(span))
}

func (f *flight) models() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	models := make(map[string]int)
	for c := range f.calls {
		models[c.observer.Model()]++
	}
	return models
}
