package testkit

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// AsNobody runs f on a thread of its own as user 65534, without capabilities,
// and lets the thread die afterwards. f must not rely on other goroutines.
func AsNobody(t testing.TB, f func()) {
	t.Helper()
	RequireRoot(t)
	var errno unix.Errno
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the runtime ends the thread
		// The raw call changes this thread only; unix.Setresuid changes all.
		if _, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); errno == 0 {
			f()
		}
	}()
	<-done
	if errno != 0 {
		t.Fatalf("setresuid: %v", errno)
	}
}
