package proxy

import (
	"sync"
	"time"
)

// flight knows which calls are in flight, and how many were over any span at
// each upstream.
type flight struct {
	mu    sync.Mutex
	calls map[*call]struct{}
	loads map[string]*load // by upstream, those with calls in flight
}

// load of one upstream.
type load struct {
	calls int
	// area is the integral of the number of calls over time since the start,
	// in call-nanoseconds. It may wrap: only differences are used.
	area uint64
	at   time.Time
}

func newFlight() *flight {
	return &flight{calls: make(map[*call]struct{}), loads: make(map[string]*load)}
}

// advance brings area to now. Clocks read by several goroutines arrive out of
// order: time never goes back.
func (l *load) advance(now time.Time) {
	if elapsed := now.Sub(l.at); elapsed > 0 {
		l.area += uint64(elapsed) * uint64(l.calls)
		l.at = now
	}
}

// enter notes the area when the call began.
func (f *flight) enter(c *call, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[c] = struct{}{}
	l := f.loads[c.upstream]
	if l == nil {
		l = &load{at: now}
		f.loads[c.upstream] = l
	}
	l.advance(now)
	l.calls++
	c.area = l.area
}

// leave returns the time-weighted number of calls at c's upstream while c was,
// c included.
func (f *flight) leave(c *call, now time.Time) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.calls, c)
	l := f.loads[c.upstream]
	l.advance(now)
	if l.calls--; l.calls == 0 {
		delete(f.loads, c.upstream)
	}
	span := now.Sub(c.start)
	if span <= 0 {
		return float64(l.calls + 1)
	}
	return max(1, float64(l.area-c.area)/float64(span))
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
