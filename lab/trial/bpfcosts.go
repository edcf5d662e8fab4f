package trial

import (
	"fmt"
	"io"
	"time"
)

// BPFCosts sums up the exporter's programs over the halves with exporter: Add
// is an Overhead's Watch.
type BPFCosts struct {
	Wall     time.Duration
	Programs []BPFProgram
}

// Add takes in what one exporter's programs did while requests ran.
func (c *BPFCosts) Add(e *Exporter, took time.Duration) error {
	found, err := BPFPrograms(e.PID())
	if err != nil {
		return err
	}
	c.Wall += took
	for _, p := range found {
		c.sum(p)
	}
	return nil
}

func (c *BPFCosts) sum(p BPFProgram) {
	for i := range c.Programs {
		if sum := &c.Programs[i]; sum.Name == p.Name {
			sum.Runs += p.Runs
			sum.RunTime += p.RunTime
			return
		}
	}
	c.Programs = append(c.Programs, p)
}

// Total of all programs.
func (c *BPFCosts) Total() (t BPFProgram) {
	for _, p := range c.Programs {
		t.Runs += p.Runs
		t.RunTime += p.RunTime
	}
	return t
}

// Net is what is left of a program's time without what measuring took.
func (p BPFProgram) Net(floor BPFProgram) time.Duration {
	return max(0, p.RunTime-time.Duration(p.Runs)*floor.PerRun())
}

// Share of the wall time, as a part of one core.
func (c *BPFCosts) Share(d time.Duration) float64 {
	if c.Wall == 0 {
		return 0
	}
	return d.Seconds() / c.Wall.Seconds()
}

// Write prints a line for each program and the sum.
func (c *BPFCosts) Write(out io.Writer, floor BPFProgram) {
	for _, p := range c.Programs {
		fmt.Fprintf(out, "BPF %-18s %9d runs, %4d ns each, %.3f%% of wall time\n", p.Name, p.Runs, p.PerRun().Nanoseconds(), 100*c.Share(p.RunTime))
	}
	total := c.Total()
	fmt.Fprintf(out, "BPF together: %.3f%% of %.1f s of wall time while requests ran; %.3f%% without the %d ns a run that measuring takes\n",
		100*c.Share(total.RunTime), c.Wall.Seconds(), 100*c.Share(total.Net(floor)), floor.PerRun().Nanoseconds())
}
