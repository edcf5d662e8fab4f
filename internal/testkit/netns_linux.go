package testkit

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// InNetns runs f on a thread of its own inside a network namespace, given by
// name or by the path of its file: sockets that f itself makes (not other
// goroutines) belong there.
func InNetns(t testing.TB, name string, f func() error) {
	t.Helper()
	RequireRoot(t)
	err := onThread(func() error {
		path := name
		if !strings.HasPrefix(path, "/") {
			path = "/run/netns/" + name
		}
		ns, err := os.Open(path)
		if err != nil {
			return err
		}
		defer ns.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return os.NewSyscallError("setns", err)
		}
		return f()
	})
	if err != nil {
		t.Fatalf("in network namespace %s: %v", name, err)
	}
}
