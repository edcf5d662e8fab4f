package detector_test

import (
	"testing"
	"time"

	"grayfail/detector"
	"grayfail/event"
)

// A prompt that is one exchange on each leg: when its peer is slow there is a
// delay before one reply, and when anything else is, too. No name is given.
func TestOneExchangeIsTooFewToNameAHost(t *testing.T) {
	for name, late := range map[string]func(*event.Exchange){
		"six times as long": func(e *event.Exchange) { e.Duration, e.FirstByte = 6*e.Duration, 6*e.FirstByte },
		"as long as a retransmission timeout": func(e *event.Exchange) {
			e.Duration, e.FirstByte = e.Duration+230*time.Millisecond, e.FirstByte+230*time.Millisecond
		},
		"the reply evenly slow": func(e *event.Exchange) { e.Duration += 400 * time.Millisecond },
	} {
		g := newEngine("a", "b")
		g.prompt = 320
		records := g.requests(12, "ok")
		g.fault = func(leg int, e *event.Exchange) {
			if leg == 0 && e.RequestBytes > 100_000 {
				late(e)
			}
		}
		records = append(records, g.requests(4, "bad")...)
		rows := play(detector.DefaultConfig(), records)
		slowRows(t, rows)
		t.Run(name, func(t *testing.T) {
			all(t, of(rows, "bad", event.PhasePrefill), 4, event.VerdictSlow, event.CauseUnattributed, "")
		})
	}
}

// A machine that decays slowly, with one leg and little else: its legs have
// come to take more than the whole did once, which does not make them guilty.
func TestDecayOfTheMachineNamesNobody(t *testing.T) {
	g := newEngine("only")
	g.tokens, g.prompt, g.local, g.sigma = 12, 100, 300*time.Microsecond, 0.1
	records := g.requests(30, "before")
	for i := range 150 {
		slower := 1 + 1.9*float64(i+1)/150
		g.turn, g.local = time.Duration(slower*2e6), time.Duration(slower*300e3)
		records = append(records, g.requests(10, "decay")...)
	}
	slow := 0
	for _, row := range slowRows(t, play(detector.DefaultConfig(), records)) {
		if slow++; row.Leg != "" {
			t.Errorf("%s %s: r %.2f, %s %q (%s)", row.ID, row.Phase, *row.R, row.Cause, row.Leg, row.Detail)
		}
	}
	if slow < 100 {
		t.Errorf("%d slow, want 100 and more", slow)
	}
}
