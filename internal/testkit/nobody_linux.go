package testkit

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// AsNobody runs f on a thread of its own as user 65534, without capabilities,
// and lets the thread die afterwards. f must not rely on other goroutines.
func AsNobody(t testing.TB, f func()) {
	t.Helper()
	RequireRoot(t)
	err := onThread(func() error {
		// The raw call changes this thread only; unix.Setresuid changes all.
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
			return os.NewSyscallError("setresuid", errno)
		}
		f()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
