package ebpf

import (
	"fmt"
	"io"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Losses counts what was seen by nobody, by reason, since Load.
type Losses struct {
	Ring      uint64 // events: the ring buffer was full
	Sockets   uint64 // connects and sends whose socket found the table full: no exchange is clocked
	Missed    uint64 // runs the kernel skipped, since the program was running on that CPU (5.12)
	Malformed uint64 // events this package could not read
	// Evicted counts sockets dropped from the table by age, or since they are
	// not watched any more. They are no loss: what was open was reported.
	Evicted uint64
}

// enum lost_reason, maps.h.
const (
	lostRing    = 0
	lostSockets = 1
)

// ProgramStats is what one program cost. Runs and RunTime stay zero unless the
// kernel measures: EnableStats, or the sysctl kernel.bpf_stats_enabled.
type ProgramStats struct {
	Name    string // attach point: tp_btf/tcp_probe
	Runs    uint64
	RunTime time.Duration
	Missed  uint64 // see Losses.Missed
}

// Losses gives the losses by reason.
func (p *Probes) Losses() Losses {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.losses
	if p.maps == nil {
		return l
	}
	l.Ring = p.lostInKernel(lostRing)
	l.Sockets = p.lostInKernel(lostSockets)
	for _, h := range p.hooks {
		if s, err := h.prog.Stats(); err == nil {
			l.Missed += s.RecursionMisses
		}
	}
	return l
}

func (p *Probes) lostInKernel(reason uint32) (sum uint64) {
	var perCPU []uint64
	if err := p.maps[probesMapLost].Lookup(reason, &perCPU); err != nil {
		return 0
	}
	for _, n := range perCPU {
		sum += n
	}
	return sum
}

// Lost sums the losses: events that the kernel or this package could not hand
// over. Above zero the figures of that time are incomplete.
func (p *Probes) Lost() uint64 {
	l := p.Losses()
	return l.Ring + l.Sockets + l.Missed + l.Malformed
}

// Stats gives the cost of each program that runs.
func (p *Probes) Stats() []ProgramStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	stats := make([]ProgramStats, 0, len(p.hooks))
	for _, h := range p.hooks {
		one := ProgramStats{Name: h.name()}
		if s, err := h.prog.Stats(); err == nil {
			one.Runs, one.RunTime, one.Missed = s.RunCount, s.Runtime, s.RecursionMisses
		}
		stats = append(stats, one)
	}
	return stats
}

// Sockets counts the sockets in the table.
func (p *Probes) Sockets() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.maps == nil {
		return 0, nil
	}
	return p.scan.read(p.maps[probesMapSockets])
}

// EnableStats makes the kernel measure every BPF program's run time until the
// returned value is closed (5.8). It costs each run about 20 ns, so it is for
// tests and benchmarks.
func EnableStats() (io.Closer, error) {
	c, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		return nil, fmt.Errorf("enable BPF statistics: %w", err)
	}
	return c, nil
}
