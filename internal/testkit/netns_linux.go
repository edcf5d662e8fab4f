package testkit

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// InNetns runs f on a thread of its own inside the named network namespace:
// sockets that f itself makes (not other goroutines) belong there.
func InNetns(t testing.TB, name string, f func() error) {
	t.Helper()
	RequireRoot(t)
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime ends the thread
		done <- func() error {
			ns, err := os.Open("/run/netns/" + name)
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
				return os.NewSyscallError("setns", err)
			}
			return f()
		}()
	}()
	if err := <-done; err != nil {
		t.Fatalf("in network namespace %s: %v", name, err)
	}
}
