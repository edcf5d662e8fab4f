package otlp

import (
	"testing"

	"grayfail/internal/testkit"
)

func TestHalfAHeaderIsNotWaitedFor(t *testing.T) {
	testkit.HalfHeader(t, New(Config{HTTP: "127.0.0.1:0"}, Hooks{}).newHTTP())
}
