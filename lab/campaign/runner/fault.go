package runner

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"grayfail/lab"
	"grayfail/lab/campaign/spec"
)

// count is what a fault's counter says: Acted is the figure that proves it, of
// Total where that is known.
type count struct {
	Acted, Total float64
	Unit         string
	// Drops and Packets are set where the fault's device counts both.
	Drops, Packets *uint64
}

// fault makes a condition and unmakes it.
type fault interface {
	apply(context.Context) error
	count(context.Context) (count, error)
	// clear is called after apply, whether that worked or not, and by the next
	// start after a kill.
	clear(context.Context) error
}

// clearTime bounds the clearing of a fault: it happens when the caller's
// context may have ended already.
const clearTime = 30 * time.Second

func newFault(c *spec.Condition) fault {
	ns := lab.Namespace(c.Netns)
	switch c.Kind() {
	case "netem":
		return &qdisc{ns, c.Device, "netem", c.Netem}
	case "tbf":
		return &qdisc{ns, c.Device, "tbf", c.TBF}
	case "nftables":
		return &drop{lab.Loss{Link: lab.Link{CoordinatorDevice: c.Device}, Coordinator: ns, Direction: lab.Replies, Percent: c.DropPercent}}
	case "pause":
		run := time.Duration(float64(c.Pause.Period) * (100 - c.Pause.Percent) / 100)
		return &pause{pid: c.Pause.PID, Pause: lab.Pause{Process: process(c.Pause.PID), Run: run, Stop: time.Duration(c.Pause.Period) - run}}
	case "commands":
		return &commands{c.Apply, c.Clear, c.Counter}
	}
	return none{}
}

// none is no fault at all.
type none struct{}

func (none) apply(context.Context) error          { return nil }
func (none) clear(context.Context) error          { return nil }
func (none) count(context.Context) (count, error) { return count{}, nil }

// gone says that there is no such device any more, and so nothing to clear.
func gone(ctx context.Context, ns lab.Namespace, device string) bool {
	if _, err := os.Stat(ns.Path()); errors.Is(err, os.ErrNotExist) {
		return true
	}
	return ns.Do(func() error { _, err := net.InterfaceByName(device); return err }) != nil && ctx.Err() == nil
}

// drop is the lab's loss on whatever arrives at a device.
type drop struct{ lab.Loss }

func (d *drop) apply(ctx context.Context) error { return d.Apply(ctx) }

// clear removes the table, also one that an earlier process left.
func (d *drop) clear(ctx context.Context) error {
	if gone(ctx, d.Coordinator, d.Link.CoordinatorDevice) {
		return nil
	}
	return d.Remove(ctx)
}

func (d *drop) count(context.Context) (count, error) {
	e, err := d.Acted()
	if err != nil && !errors.Is(err, lab.ErrDidNotAct) {
		return count{}, err
	}
	return count{Acted: float64(e.Count), Total: float64(e.Total), Unit: "packets dropped", Drops: &e.Count, Packets: &e.Total}, nil
}

// process is one that is not ours.
type process int

func (p process) PID() int { return int(p) }

func (p process) Signal(s syscall.Signal) error {
	found, err := os.FindProcess(int(p)) // by pidfd where the kernel has it: the number may be another's by now
	if err != nil {
		return err
	}
	return found.Signal(s)
}

// pause stops and continues a process.
type pause struct {
	lab.Pause
	pid int
}

func (p *pause) apply(ctx context.Context) error { return p.Apply(ctx) }

func (p *pause) count(context.Context) (count, error) {
	e, err := p.Acted()
	if err != nil && !errors.Is(err, lab.ErrDidNotAct) {
		return count{}, err
	}
	return count{Acted: float64(e.Count), Unit: "stops seen"}, nil
}

// clear lets it run on, also when an earlier process of ours stopped it.
func (p *pause) clear(context.Context) error {
	err := p.Clear()
	if resume := process(p.pid).Signal(syscall.SIGCONT); resume != nil && !errors.Is(resume, os.ErrProcessDone) {
		err = errors.Join(err, resume)
	}
	return err
}
