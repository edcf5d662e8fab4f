package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Command is a program to run inside a Cluster.
type Command struct {
	Name      string // of its log file; unique in the Cluster
	Namespace Namespace
	Argv      []string
	Env       []string // added to the owner's environment
	// Realtime schedules it before all ordinary programs (SCHED_RR).
	Realtime bool
	// Grace is how long it gets between SIGTERM and SIGKILL; 0 means 5 s.
	Grace time.Duration
}

// Process is a running Command.
type Process struct {
	Command
	LogPath string
	cmd     *exec.Cmd
	exited  chan struct{} // closed once reaped; then err is set
	err     error
}

func newProcess(l *launcher, dir string, c Command) (*Process, error) {
	p := &Process{Command: c, LogPath: filepath.Join(dir, c.Name+".log"), exited: make(chan struct{})}
	log, err := os.Create(p.LogPath)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(c.Argv[0], c.Argv[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		Setsid:    true, // a terminal's Ctrl-C reaches the owner only, who knows the order
	}
	if err := l.start(c.Namespace, p.cmd, c.Realtime); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// PID of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Stop ends the process: SIGTERM, then SIGKILL after its grace. It is not an
// error if it ended by the signal or had already ended.
func (p *Process) Stop() error {
	grace := p.Grace
	if grace == 0 {
		grace = 5 * time.Second
	}
	_ = p.Signal(syscall.SIGCONT) // a stopped process cannot act on SIGTERM
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.Name, err)
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(grace):
	}
	if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.Name, err)
	}
	<-p.exited
	return nil
}

// Tail is the end of the process's log, for error messages.
func (p *Process) Tail(lines int) string {
	data, err := os.ReadFile(p.LogPath)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// WaitFor polls ready until it says nil. It ends early, with the log's end,
// when the process does.
func (p *Process) WaitFor(ctx context.Context, what string, ready func(context.Context) error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s ended before %s: %w\n%s", p.Name, what, errors.Join(p.err, err), p.Tail(10))
		case <-ctx.Done():
			return fmt.Errorf("%s: %s: %w (last: %w)\n%s", p.Name, what, ctx.Err(), err, p.Tail(10))
		case <-tick.C:
		}
	}
}
