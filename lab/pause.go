package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// Pause makes a process slow: it runs for Run, is stopped for Stop, and so on.
type Pause struct {
	Process interface {
		PID() int
		Signal(syscall.Signal) error
	}
	Run, Stop time.Duration

	cancel context.CancelFunc
	done   chan struct{}
	stops  atomic.Uint64 // stops that were seen to hold the process
	err    error         // of the loop, read after done
}

// NewPause slows a leg's worker, or the coordinator for leg "". It runs for
// percent of the time, in turns of period.
func (c *Cluster) NewPause(leg string, percent float64, period time.Duration) (*Pause, error) {
	p := c.server
	if leg != "" {
		var err error
		if p, err = c.Worker(leg); err != nil {
			return nil, err
		}
	}
	if percent <= 0 || percent >= 100 || period < 2*time.Millisecond {
		return nil, fmt.Errorf("pause: %g%% of %v: more than 0 and less than 100, of 2 ms at least", percent, period)
	}
	run := time.Duration(float64(period) * percent / 100)
	return &Pause{Process: p, Run: run, Stop: period - run}, nil
}

func (f *Pause) String() string {
	return fmt.Sprintf("process %d runs %v of every %v", f.Process.PID(), f.Run, f.Run+f.Stop)
}

// Apply starts the loop.
func (f *Pause) Apply(context.Context) error {
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel, f.done = cancel, make(chan struct{})
	f.stops.Store(0)
	go func() {
		defer close(f.done)
		f.err = f.loop(ctx)
	}()
	return nil
}

func (f *Pause) loop(ctx context.Context) error {
	for {
		if !sleep(ctx, f.Run) {
			return nil
		}
		if err := f.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		held := sleep(ctx, f.Stop)
		// T: stopped on a signal (proc(5)).
		if letter, _, err := procStat(f.Process.PID()); err == nil && letter == 'T' {
			f.stops.Add(1)
		}
		if err := f.Process.Signal(syscall.SIGCONT); err != nil {
			return err
		}
		if !held {
			return nil
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Acted counts the stops after which the process was seen standing still.
func (f *Pause) Acted() (Evidence, error) {
	return evidence(f, Evidence{What: "stops seen in /proc", Count: f.stops.Load()})
}

// Clear ends the loop; the process runs on.
func (f *Pause) Clear() error {
	if f.cancel == nil {
		return nil
	}
	f.cancel()
	<-f.done
	f.cancel = nil
	if errors.Is(f.err, os.ErrProcessDone) {
		return nil
	}
	return f.err
}
