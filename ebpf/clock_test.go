package ebpf

import "testing"

// timeline drives a Clock by hand.
type timeline struct{ mono, wall int64 }

func (l *timeline) clock() *Clock {
	return NewClock(func() int64 { return l.mono }, func() int64 { return l.wall })
}

const second = int64(1e9)

// TestClock follows an event's time through what happens to the two clocks
// between the event and its drain.
func TestClock(t *testing.T) {
	type step struct {
		what          string
		mono, wall    int64 // how far each clock moves
		event         int64 // a monotonic time, and
		want          int64 // its wall-clock time after measuring
		withoutRemeas int64 // the same before measuring
	}
	for _, test := range []struct {
		name  string
		steps []step
	}{
		{"both run", []step{
			{"start", 0, 0, 100 * second, 1000 * second, 1000 * second},
			{"ten seconds", 10 * second, 10 * second, 105 * second, 1005 * second, 1005 * second},
		}},
		{"wall clock steps ahead", []step{
			{"NTP: an hour", second, 3601 * second, 101 * second, 4601 * second, 1001 * second},
		}},
		{"wall clock steps back", []step{
			{"NTP: minus an hour", second, -3599 * second, 101 * second, -2599 * second, 1001 * second},
		}},
		{"suspend", []step{
			{"8 hours asleep: the monotonic clock stood", second, 8*3600*second + second, 101 * second, 29801 * second, 1001 * second},
			{"and on", second, second, 102 * second, 29802 * second, 29802 * second},
		}},
		{"slew", []step{
			{"500 ppm fast", 100 * second, 100*second + 50e6, 200 * second, 1100*second + 50e6, 1100 * second},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := &timeline{mono: 100 * second, wall: 1000 * second}
			c := l.clock()
			for _, s := range test.steps {
				l.mono += s.mono
				l.wall += s.wall
				if got := c.Wall(uint64(s.event)); got != s.withoutRemeas {
					t.Errorf("%s, before measuring: %d, want %d", s.what, got, s.withoutRemeas)
				}
				c.Measure()
				if got := c.Wall(uint64(s.event)); got != s.want {
					t.Errorf("%s: %d, want %d", s.what, got, s.want)
				}
			}
		})
	}
}

// TestClockPreempted: the attempt that was disturbed least counts.
func TestClockPreempted(t *testing.T) {
	monos := []int64{0, 5000, 5010, 5020, 6000, 9000} // windows 5000, 10, 3000
	walls := []int64{1_004_000, 1_005_015, 1_008_500}
	c := NewClock(
		func() int64 { m := monos[0]; monos = monos[1:]; return m },
		func() int64 { w := walls[0]; walls = walls[1:]; return w },
	)
	if got := c.Wall(0); got != 1_000_000 {
		t.Errorf("offset %d, want 1000000", got)
	}
}

// TestSystemClock: the kernel's clock runs and maps near wall-clock time.
func TestSystemClock(t *testing.T) {
	c := SystemClock()
	a := c.Monotonic()
	b := c.Monotonic()
	if a == 0 || b < a {
		t.Errorf("monotonic went from %d to %d", a, b)
	}
	if c.Wall(b) < c.Wall(a) {
		t.Error("mapping is not monotonic")
	}
}
