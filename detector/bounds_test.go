package detector

import (
	"fmt"
	"testing"
	"time"

	"grayfail/event"
)

// Three hundred legs, a million exchanges, hundreds of models: every table
// stays within its bound, and what did not fit is counted.
func TestTablesAreBounded(t *testing.T) {
	c := DefaultConfig()
	c.MaxRecords, c.MaxModels, c.MaxStrata, c.MaxPending = 4096, 8, 32, 500
	d := New(c)
	now := int64(1_800_000_000e9)
	for i := range 1_000_000 {
		now += 20e3
		d.Exchange(event.Exchange{
			Leg: fmt.Sprintf("leg-%d", i%300), SendNS: now, Duration: time.Duration(1 + i%1000*1000), FirstByte: 1, Ack: 1,
			RequestBytes: 1 << (i % 30), ReplyBytes: 1 << (i % 17), Flow: event.Flow{Socket: uint64(i % 3)},
		})
		d.Retransmit(event.Retransmit{Leg: "leg-1", TimeNS: now, Kind: event.RetransmitRTO})
		d.Connection(event.Connection{Leg: "leg-1", EndNS: now})
		if i%100 == 0 {
			d.Request(event.Request{
				ID: fmt.Sprint(i), Source: "s", Model: fmt.Sprintf("model-%d", i/100%2*(i/100%200)), EndNS: now, StartNS: now - 1e9, FirstTokenNS: now - 9e8,
				GeneratedTokens: 1 << (3 + i/100%14), PromptTokens: 1 << (i / 100 % 20), DecodeRate: 10, PrefillRate: 100, Concurrency: float64(i / 100 % 40), Outcome: event.OutcomeOK,
			})
		}
		if i%10_000 == 0 {
			d.Advance(now)
			d.Qdisc(event.Qdisc{TimeNS: now, Device: fmt.Sprint("dev", i), Handle: "1:"})
		}
	}
	s := d.Stats()
	if s.Legs != c.MaxLegs+1 || s.Models != c.MaxModels || s.Strata != c.MaxStrata || s.Exchanges > c.MaxRecords || s.Pending > c.MaxPending {
		t.Errorf("beyond the bounds: %+v", s)
	}
	if s.LegsOverflow == 0 || s.ModelsFreed == 0 || s.StrataOverflow == 0 || s.PendingOverflow == 0 {
		t.Errorf("what did not fit was not counted: %+v", s)
	}
	for _, l := range d.store.legs.all {
		if len(l.classes) > maxClasses || len(l.resends.ring) > maxResends || len(l.failed.ring) > maxFailures || len(l.sums.slots) > 1000 {
			t.Fatalf("%s: %d classes, %d retransmits, %d failures, %d sums", l.name, len(l.classes), len(l.resends.ring), len(l.failed.ring), len(l.sums.slots))
		}
	}
}

// A stratum takes what the contract gives a series.
func TestSeriesSize(t *testing.T) {
	d := New(DefaultConfig())
	now := int64(1_800_000_000e9)
	for i := range 1000 {
		now += 1e9
		d.Request(event.Request{ID: "r", Source: "s", Model: "m", EndNS: now, GeneratedTokens: 32, DecodeRate: 100 + float64(i%10), Concurrency: 1, Outcome: event.OutcomeOK})
		d.Advance(now)
	}
	bytes := 0
	for _, st := range d.order[0].decode.strata {
		bytes += 16*cap(st.window.ring) + 8*cap(st.window.sorted) + 16*cap(st.held) + 300
	}
	if bytes > 16<<10 {
		t.Errorf("%d bytes in the strata of one series, want at most 16 KiB", bytes)
	}
}

func TestImplausibleEvents(t *testing.T) {
	d := New(DefaultConfig())
	for _, e := range []event.Exchange{
		{Leg: "", SendNS: 1, Duration: 1},
		{Leg: "a", SendNS: 0, Duration: 1},
		{Leg: "a", SendNS: -5, Duration: 1},
		{Leg: "a", SendNS: 1 << 62, Duration: 1},
		{Leg: "a", SendNS: 1, Duration: -1},
		{Leg: "a", SendNS: 1, Duration: 1<<63 - 1},
	} {
		d.Exchange(e)
	}
	if s := d.Stats(); s.ExchangesUnusable != 6 || s.Exchanges != 0 {
		t.Errorf("%+v, want 6 unusable and none kept", s)
	}
}

// A request from the future is judged by its rate at once and does not wait.
func TestRequestFromTheFuture(t *testing.T) {
	d := New(DefaultConfig())
	now := int64(1_800_000_000e9)
	d.Advance(now)
	d.Request(event.Request{ID: "r", Source: "s", Model: "m", StartNS: now, EndNS: now + 3600e9, GeneratedTokens: 32, DecodeRate: 100, Outcome: event.OutcomeOK})
	if out := d.Advance(now + 2e9); len(out.Rows) != 2 || d.Stats().Ahead != 1 {
		t.Errorf("%d rows, %+v", len(out.Rows), d.Stats())
	}
}
