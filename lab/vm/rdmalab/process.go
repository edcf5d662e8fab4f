package rdmalab

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Agent is a process with queue pairs and TCP connections (see the command
// agent for what it can do).
type Agent struct {
	PID int

	t   testing.TB
	cmd *exec.Cmd
	in  *os.File
	out *bufio.Scanner
}

// Start starts an agent; env is added to its environment. It ends with the
// test.
func Start(t testing.TB, env ...string) *Agent {
	t.Helper()
	return StartAs(t, 0, env...)
}

// StartAs starts an agent under a user id: root may lock any amount of memory,
// others what RLIMIT_MEMLOCK says.
func StartAs(t testing.TB, uid uint32, env ...string) *Agent {
	t.Helper()
	path := os.Getenv("VM_AGENT")
	if path == "" {
		t.Fatal("VM_AGENT is not set: name ./lab/vm/rdmalab/agent in vm.Job.Programs")
	}
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer theirIn.Close()
	cmd.Stdin = theirIn
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a := &Agent{PID: cmd.Process.Pid, t: t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
	t.Cleanup(a.Stop)
	return a
}

// Stop kills the agent, and returns when the kernel has taken back all it had.
func (a *Agent) Stop() {
	_ = a.in.Close()
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

// Try gives a command and returns its answer.
func (a *Agent) Try(format string, args ...any) (string, error) {
	a.t.Helper()
	line := fmt.Sprintf(format, args...)
	if _, err := fmt.Fprintln(a.in, line); err != nil {
		a.t.Fatalf("agent: %s: %v", line, err)
	}
	if !a.out.Scan() {
		a.t.Fatalf("agent: %s: no answer: %v", line, a.out.Err())
	}
	if why, bad := strings.CutPrefix(a.out.Text(), "error "); bad {
		return "", fmt.Errorf("agent: %s: %s", line, why)
	}
	return strings.TrimPrefix(strings.TrimPrefix(a.out.Text(), "ok"), " "), nil
}

// Do gives a command that must work.
func (a *Agent) Do(format string, args ...any) string {
	a.t.Helper()
	answer, err := a.Try(format, args...)
	if err != nil {
		a.t.Fatal(err)
	}
	return answer
}

// Ready makes a queue pair and takes it to RTS on a port, from the GID that a
// local address makes to that of the peer.
func (a *Agent) Ready(name, device string, port int, local, peer netip.Addr, peerNumber int) (number string) {
	a.t.Helper()
	number = a.Do("pair %s %s", name, device)
	a.Do("init %s %d", name, port)
	a.Do("connect %s %d %s %s %d", name, port, GIDIndex(a.t, device, port, GID(local)), peer, peerNumber)
	a.Do("rts %s", name)
	return number
}

// GID is an address as sysfs prints it in a GID table.
func GID(a netip.Addr) string {
	b := a.As16()
	var groups []string
	for i := 0; i < 16; i += 2 {
		groups = append(groups, fmt.Sprintf("%02x%02x", b[i], b[i+1]))
	}
	return strings.Join(groups, ":")
}
