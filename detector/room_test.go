package detector

import (
	"fmt"
	"testing"
	"time"

	"grayfail/event"
)

// Clients choose the names of models: those in requests that cannot be learned
// from take no place, and others make room for what is in use.
func TestModelsMakeRoom(t *testing.T) {
	c := DefaultConfig()
	d := New(c)
	now := int64(1_800_000_000e9)
	give := func(model string, outcome event.Outcome, rate float64) event.Row {
		t.Helper()
		now += 1e9
		d.Request(event.Request{ID: "r", Source: "s", Model: model, EndNS: now, GeneratedTokens: 32, DecodeRate: rate, Outcome: outcome, Concurrency: 1})
		out := d.Advance(now + 2e9)
		if len(out.Rows) != 2 {
			t.Fatalf("%d rows, want 2", len(out.Rows))
		}
		return out.Rows[0]
	}
	for i := range 2 * c.MaxModels {
		if row := give(fmt.Sprint("failed-", i), event.OutcomeError, 100); row.Verdict != event.VerdictSlow {
			t.Fatalf("a failed request of a new model is %s, want slow", row.Verdict)
		}
		give(fmt.Sprint("no-rate-", i), event.OutcomeOK, 0)
	}
	if s := d.Stats(); s.Models != 0 || s.ModelsOverflow != 0 {
		t.Errorf("%d models, %d overflowed, after requests that teach nothing", s.Models, s.ModelsOverflow)
	}

	for range c.MinSamples {
		give("good", event.OutcomeOK, 100)
		give("ill", event.OutcomeOK, 100)
	}
	for range c.OpenSlow {
		give("ill", event.OutcomeOK, 20)
	}
	for i := range 2 * c.MaxModels { // idle after one request; good stays in use
		give(fmt.Sprint("once-", i), event.OutcomeOK, 100)
		if row := give("good", event.OutcomeOK, 90); row.Verdict != event.VerdictOK {
			t.Fatalf("after %d other models: %s, want ok", i, row.Verdict)
		}
	}
	s := d.Stats()
	if want := uint64(2*c.MaxModels - (c.MaxModels - 2)); s.ModelsFreed != want || s.Models != c.MaxModels || s.ModelsOverflow != 0 {
		t.Errorf("%d models, %d freed, %d overflowed; want %d, %d, 0", s.Models, s.ModelsFreed, s.ModelsOverflow, c.MaxModels, want)
	}
	if row := give("ill", event.OutcomeOK, 20); row.Verdict != event.VerdictSlow {
		t.Errorf("the model with an open episode was forgotten: %s", row.Verdict)
	}
	for i := range c.MaxModels {
		for range c.MinSamples {
			give(fmt.Sprint("ill-", i), event.OutcomeOK, 100)
		}
		for range c.OpenSlow {
			give(fmt.Sprint("ill-", i), event.OutcomeOK, 20)
		}
	}
	if s := d.Stats(); s.ModelsOverflow == 0 || s.Models != c.MaxModels {
		t.Errorf("%d models, %d overflowed, where each has an open episode", s.Models, s.ModelsOverflow)
	}
	strata := 0
	for _, m := range d.order {
		strata += len(m.decode.strata) + len(m.prefill.strata)
	}
	if d.strata != strata {
		t.Errorf("%d strata counted, %d kept", d.strata, strata)
	}
}

// A full table of legs gives the place of a leg that is gone to a new one, and
// nothing is left of the old one.
func TestLegsMakeRoom(t *testing.T) {
	c := DefaultConfig()
	c.MaxLegs = 4
	d := New(c)
	now := int64(1_800_000_000e9)
	request := func(legs ...string) {
		start := now
		for range 32 {
			for _, leg := range legs {
				d.Exchange(event.Exchange{Leg: leg, SendNS: now, Duration: time.Millisecond, FirstByte: 9e5, Ack: 1e4, RequestBytes: 100, ReplyBytes: 100})
				now += 1e6
			}
			now += 1e6
		}
		d.Request(event.Request{
			ID: fmt.Sprint(now), Source: "s", Model: "m", StartNS: start, FirstTokenNS: start, EndNS: now, GeneratedTokens: 32,
			DecodeRate: 32e9 / float64(now-start), Outcome: event.OutcomeOK, Concurrency: 1,
		})
		now += 3e9
		d.Advance(now)
	}
	for range 20 {
		request("a", "b", "c", "d")
	}
	request("a", "b", "c", "e")
	if s := d.Stats(); s.LegsFreed != 0 || s.LegsOverflow == 0 {
		t.Errorf("%+v, want no leg freed while all are in use", s)
	}
	overflow := d.Stats().LegsOverflow
	for range 250 { // 12 minutes without d
		request("a", "b", "c")
	}
	request("a", "b", "c", "e")
	request("a", "b", "c", "d") // e is in use
	s := d.Stats()
	if s.LegsFreed != 1 || s.LegsOverflow <= overflow || d.store.legs.byName["e"] == nil || d.store.legs.byName["d"] != nil {
		t.Errorf("%+v, want d to have made room for e, and not e for d", s)
	}
	kept := 0
	for _, l := range d.store.legs.all {
		kept += l.turns.n
	}
	if s.Exchanges != kept {
		t.Errorf("%d exchanges counted, %d kept", s.Exchanges, kept)
	}
	for _, st := range d.order[0].decode.strata {
		for _, ref := range st.refs.legs {
			if d.store.legs.byName[ref.leg.name] != ref.leg {
				t.Errorf("a reference of %s is left", ref.leg.name)
			}
		}
	}
}
