package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
)

// Load keeps every CPU of this host busy with other work.
type Load struct {
	PerCPU int // processes that never sleep, for each CPU

	running []*exec.Cmd
}

// NewLoad makes the load of a busy host: each process of the engine gets one
// part of PerCPU+1 of the time, if it always has something to do.
func NewLoad(perCPU int) (*Load, error) {
	if perCPU < 1 || perCPU > 64 {
		return nil, fmt.Errorf("load: %d processes a CPU: from 1 to 64", perCPU)
	}
	return &Load{PerCPU: perCPU}, nil
}

func (l *Load) String() string { return fmt.Sprintf("%d busy processes a CPU", l.PerCPU) }

// Apply starts the processes. They end with the one that started them.
func (l *Load) Apply(context.Context) error {
	for range l.PerCPU * runtime.NumCPU() {
		cmd := exec.Command("/bin/sh", "-c", fmt.Sprintf("while kill -0 %d 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done", os.Getpid()))
		if err := cmd.Start(); err != nil {
			_ = l.Clear()
			return fmt.Errorf("%s: %w", l, err)
		}
		l.running = append(l.running, cmd)
	}
	return nil
}

// Acted says how much CPU time the processes have had.
func (l *Load) Acted() (Evidence, error) {
	var ticks uint64
	for _, cmd := range l.running {
		n, err := cpuTicks(cmd.Process.Pid)
		if err != nil {
			return Evidence{}, fmt.Errorf("%s: %w", l, err)
		}
		ticks += n
	}
	return evidence(l, Evidence{What: "CPU ticks of 10 ms taken by other processes", Count: ticks})
}

// cpuTicks reads utime and stime: the 14th and 15th field of proc_pid_stat(5),
// counted after the command's closing parenthesis.
func cpuTicks(pid int) (uint64, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("%s: %d fields", path, len(fields))
	}
	user, err := strconv.ParseUint(string(fields[11]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	system, err := strconv.ParseUint(string(fields[12]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return user + system, nil
}

// Clear ends the processes.
func (l *Load) Clear() error {
	for _, cmd := range l.running {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed: there is no other answer
	}
	l.running = nil
	return nil
}
