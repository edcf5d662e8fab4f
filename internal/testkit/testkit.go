// Package testkit holds what tests of several packages need.
//
// In: a *testing.T. Out: a kernel feature that is surely there, or a failed
// test: a feature that should have run here and does not is a defect, never a
// skip.
package testkit

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// RequireRoot fails the test unless it runs as root: the test command is
// documented to need root, so anything else is a broken set-up.
func RequireRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("needs root: network namespaces and BPF programs are made for real")
	}
}

// Run runs a command and fails the test with its output if it fails.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Netns makes a network namespace with loopback up, and removes it when the
// test ends. Congestion control is cubic, or reno where the machine's
// tcp_allowed_congestion_control keeps cubic from other namespaces than the
// first (net/ipv4/tcp_cong.c): never bbr, which paces through loss.
func Netns(t testing.TB, name string) string {
	t.Helper()
	RequireRoot(t)
	_ = exec.Command("ip", "netns", "del", name).Run() // left by a killed run
	Run(t, "ip", "netns", "add", name)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	Run(t, "ip", "-n", name, "link", "set", "lo", "up")
	set := []string{"netns", "exec", name, "sysctl", "-qw"}
	if exec.Command("ip", append(set, "net.ipv4.tcp_congestion_control=cubic")...).Run() != nil {
		Run(t, "ip", append(set, "net.ipv4.tcp_congestion_control=reno")...)
	}
	return name
}
