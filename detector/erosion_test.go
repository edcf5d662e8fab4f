package detector_test

import (
	"testing"
	"time"

	"grayfail/detector"
	"grayfail/event"
)

// A path that decays over 1,500 requests, too slowly for any of them to stand
// out, is named when the anchor makes them slow: what the leg took meanwhile
// has not become what is usual there.
func TestDecayOfAPathIsNamed(t *testing.T) {
	g := newEngine("a", "b")
	g.tokens = 12
	rows := 0
	records := g.requests(30, "before")
	for i := range 150 {
		g.fault = late(time.Duration(i+1) * 60 * time.Microsecond) // a token takes 5 ms, then 14
		records = append(records, g.requests(10, "decay")...)
	}
	for _, row := range slowRows(t, play(detector.DefaultConfig(), records)) {
		if row.Phase != event.PhaseDecode {
			continue
		}
		rows++
		if row.Cause != event.CauseDelay || row.Leg != "b" {
			t.Errorf("%s: r %.2f, %s %q (%s), want delay of b", row.ID, *row.R, row.Cause, row.Leg, row.Detail)
		}
	}
	if rows < 300 {
		t.Errorf("%d slow, want 300 and more", rows)
	}
}
