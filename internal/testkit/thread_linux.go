package testkit

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// onThread runs f on a thread of its own, which ends with it. It is never the
// process's first thread: that one cannot end, and what /proc/PID shows of a
// process (namespaces, owner) is what its first thread has.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread() // nothing was changed here
			done <- onThread(f)            // while this one is held
			return
		}
		done <- f() // never unlocked: the runtime ends the thread
	}()
	return <-done
}
