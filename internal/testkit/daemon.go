package testkit

import (
	"net"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// FreeAddr is an address on loopback that nobody listens on now.
func FreeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Daemon is a program that a test has started.
type Daemon struct {
	// Exited is closed when the program has ended.
	Exited <-chan struct{}

	cmd *exec.Cmd
	out *Buffer
}

// Start starts a program that runs until the test ends. Its output is shown if
// the test fails. It dies with the test process, whatever ends that.
func Start(t testing.TB, name string, args ...string) *Daemon {
	t.Helper()
	exited := make(chan struct{})
	d := &Daemon{cmd: exec.Command(name, args...), out: &Buffer{}, Exited: exited}
	d.cmd.Stdout, d.cmd.Stderr = d.out, d.out
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

	started := make(chan error)
	go func() {
		// PR_SET_PDEATHSIG is about the thread that forked, not the process:
		// keep it until the child has ended (prctl(2)).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(exited)
		err := d.cmd.Start()
		started <- err
		if err == nil {
			_ = d.cmd.Wait() // how it ended shows in Output
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	t.Cleanup(func() {
		d.Stop()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, d.Output())
		}
	})
	return d
}

// PID of the program.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Output is what the program has said so far.
func (d *Daemon) Output() string { return d.out.String() }

// Kill ends the program as kill -9 does, and waits for it.
func (d *Daemon) Kill() {
	_ = syscall.Kill(-d.PID(), syscall.SIGKILL)
	<-d.Exited
}

// Stop ends the program and waits for it: SIGTERM, then SIGKILL.
func (d *Daemon) Stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.Exited:
	case <-time.After(10 * time.Second):
		d.Kill()
	}
}
