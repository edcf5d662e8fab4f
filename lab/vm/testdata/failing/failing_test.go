//go:build guest

// Package failing fails in the guest in every way there is.
package failing

import (
	"os"
	"testing"
)

func TestGuestPasses(t *testing.T) { t.Log("seen in the guest:", os.Getpid() != 1) }

func TestGuestFails(t *testing.T) {
	t.Run("with/a slash", func(t *testing.T) { t.Error("one is not two") })
	t.Run("good", func(*testing.T) {})
}

func TestGuestSkips(t *testing.T) { t.Skip("no such device") }

func TestGuestDies(*testing.T) {
	println("last words")
	os.Exit(3)
}

func TestGuestNeverRuns(*testing.T) {}
