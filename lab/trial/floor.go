package trial

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// floorName is the program's name in the kernel.
const floorName = "empty"

// Floor is a program that does nothing, where segments are received: what the
// kernel's statistics say of it is what measuring itself takes out of every run
// of every program (two readings of a clock).
type Floor struct {
	prog *ebpf.Program
	link link.Link
}

// AttachFloor attaches it to tcp_probe.
func AttachFloor() (*Floor, error) {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: floorName, Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: "tcp_probe", License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return nil, fmt.Errorf("empty BPF program: %w", err)
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: prog})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("empty BPF program: %w", err), prog.Close())
	}
	return &Floor{prog, l}, nil
}

// Program is what the kernel counted so far.
func (f *Floor) Program() (BPFProgram, error) {
	stats, err := f.prog.Stats()
	if err != nil {
		return BPFProgram{}, fmt.Errorf("empty BPF program: %w", err)
	}
	return BPFProgram{Name: floorName, Runs: stats.RunCount, RunTime: stats.Runtime}, nil
}

// Close detaches it.
func (f *Floor) Close() error { return errors.Join(f.link.Close(), f.prog.Close()) }
