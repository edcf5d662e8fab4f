package testkit

import (
	"testing"
	"time"
)

// Eventually waits until try returns nil, and fails the test with its last
// error if that takes longer than within. It is no measurement: give it many
// times what the wait takes.
func Eventually(t testing.TB, within time.Duration, try func() error) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(within)
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("not after %s: %v", within, err)
		case <-ticker.C:
		}
	}
}
