package export

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"grayfail/event"
)

// A baseline that erodes is one line, and one when it no longer does.
func TestErodedBaselinesAreLogged(t *testing.T) {
	var out bytes.Buffer
	l := NewLog(zerolog.New(&out))
	for _, eroded := range []bool{false, true, true, true, false, false, true} {
		l.Baselines([]event.Baseline{{Source: "main", Model: "m", Phase: event.PhaseDecode, Concurrency: "1", Rate: 90, Anchor: 100, Eroded: eroded}})
	}
	if n := strings.Count(out.String(), "baseline eroded"); n != 2 {
		t.Errorf("%d warnings, want 2:\n%s", n, out.String())
	}
	if n := strings.Count(out.String(), "no longer eroded"); n != 1 {
		t.Errorf("%d lines that it is over, want 1:\n%s", n, out.String())
	}
}
