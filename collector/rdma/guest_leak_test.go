//go:build guest

package rdma

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"grayfail/internal/testkit"
	"grayfail/lab/vm/rdmalab"
)

// TestGuestLeak: 720 polls, what an hour has at one each 5 s, one after
// another, while queue pairs come and go and a link flaps, leave nothing open.
// Without rxe, whose GID table has 1024 entries of two files each: emulated,
// they take longer than all else.
func TestGuestLeak(t *testing.T) {
	device := twoPort(t)
	a := rdmalab.Start(t)
	a.Do("many %s 2 20", device)
	c := collector(t)
	poll := func(n int) {
		t.Helper()
		for i := range n {
			if i%240 == 0 {
				a.Do("pair p%d %s", i, device)
				defer a.Do("destroy p%d", i)
				testkit.Run(t, "ip", "link", "set", "tp2", "down")
				testkit.Run(t, "ip", "link", "set", "tp2", "up")
			}
			if r, problems, err := c.Collect(time.Now().UnixNano()); err != nil || len(problems) > 0 || len(r.QueuePairs) < 20 || len(r.Ports) != 2 {
				t.Fatalf("poll %d: %d queue pairs, %d ports, %v, %v", i, len(r.QueuePairs), len(r.Ports), problems, err)
			}
		}
	}
	type state struct {
		files, goroutines int
		heap              uint64
	}
	measure := func() state {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return state{openFiles(t), runtime.NumGoroutine(), m.HeapAlloc}
	}
	poll(60)
	before, start := measure(), time.Now()
	const polls = 720
	poll(polls)
	took := time.Since(start)
	after := measure()
	t.Logf("%d polls in %s, one each %s: %s, then %s", polls, took.Round(time.Millisecond), (took / polls).Round(100*time.Microsecond), fmt.Sprintf("%+v", before), fmt.Sprintf("%+v", after))
	const slack = 256 << 10 // a list of 20 queue pairs is some 2 KiB
	if after.files != before.files || after.goroutines > before.goroutines || after.heap > before.heap+slack {
		t.Errorf("before %+v, after %+v", before, after)
	}
}
