package ebpf

import "sync/atomic"

// Clock maps the kernel's monotonic time (bpf_ktime_get_ns(), which is
// CLOCK_MONOTONIC) to Unix nanoseconds.
//
// The two clocks drift apart: NTP steps and slews wall-clock time, and a
// suspend stops the monotonic clock. So the offset is measured again before
// each batch of events (Measure), and only points in time pass through it;
// spans are differences of monotonic readings and never do.
type Clock struct {
	monotonic, wall func() int64
	offset          atomic.Int64
}

// NewClock makes a Clock from two readings in nanoseconds and measures once.
func NewClock(monotonic, wall func() int64) *Clock {
	c := &Clock{monotonic: monotonic, wall: wall}
	c.Measure()
	return c
}

// attempts bounds a measurement: the reading least disturbed by preemption
// wins.
const attempts = 3

// Measure reads both clocks and moves the mapping to their present offset.
func (c *Clock) Measure() {
	best := int64(-1)
	for range attempts {
		before := c.monotonic()
		wall := c.wall()
		after := c.monotonic()
		// Wall-clock time was read somewhere between the two.
		if window := after - before; best < 0 || window < best {
			best = window
			c.offset.Store(wall - before - window/2)
		}
	}
}

// Wall gives the Unix nanoseconds of a monotonic reading, by the offset last
// measured.
func (c *Clock) Wall(monotonic uint64) int64 { return int64(monotonic) + c.offset.Load() }

// Monotonic reads the clock that the kernel's events carry.
func (c *Clock) Monotonic() uint64 { return uint64(c.monotonic()) }
