package detector

import (
	"fmt"
	"testing"

	"grayfail/event"
)

// Whoever adopts a slower model has just seen the last requests of the old one
// end; they still wait for their verdicts, and are no part of the new regime.
func TestAdoptWhileRequestsWait(t *testing.T) {
	const second = int64(1e9)
	d := New(DefaultConfig())
	nowNS := 1_800_000_000 * second
	n := 0
	ask := func(rate float64) {
		n++
		d.Request(event.Request{
			ID: fmt.Sprint(n), Source: "main", Model: "m", StartNS: nowNS, FirstTokenNS: nowNS + second/50, EndNS: nowNS + second/5,
			PromptTokens: 10, GeneratedTokens: 20, DecodeRate: rate, Outcome: event.OutcomeOK, Concurrency: 1,
		})
		nowNS += second / 5
	}
	for range 30 {
		ask(100)
	}
	d.Advance(nowNS) // ten of them still wait
	if d.Adopt("", "m") == 0 {
		t.Fatal("nothing adopted")
	}
	ask(100) // came in before the next turn, began before the call
	var rows []event.Row
	for range 40 {
		ask(40)
		rows = append(rows, d.Advance(nowNS).Rows...)
	}
	rows = append(rows, d.Advance(nowNS+5*second).Rows...)
	before := 0
	for _, row := range rows {
		if row.Phase != event.PhaseDecode {
			continue
		}
		if row.Verdict == event.VerdictSlow {
			t.Errorf("%s is slow: %v of %v", row.ID, *row.Rate, *row.Baseline)
		}
		if row.Detail == "before_adoption" {
			before++
			if row.Verdict != event.VerdictUnknown || *row.Rate != 100 {
				t.Errorf("%+v", row)
			}
		}
	}
	if before < 5 {
		t.Errorf("%d rows from before the adoption", before)
	}
	for _, b := range d.Baselines() {
		if b.Phase == event.PhaseDecode && (b.Rate != 40 || b.Anchor != 40) {
			t.Errorf("baseline %+v, want 40", b)
		}
	}
}
