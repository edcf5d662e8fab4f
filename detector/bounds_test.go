package detector

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"

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
	for _, m := range d.order {
		ring := &m.decode.scores
		if len(ring.ring) > c.CorrelateOver || len(ring.devices) > maxRingDevices {
			t.Errorf("%d scores over %d devices", len(ring.ring), len(ring.devices))
		}
		for i := range ring.ring {
			if len(ring.ring[i].resent) > maxResent || len(ring.ring[i].drops) > maxScoreDevices {
				t.Errorf("%d legs, %d devices in a score", len(ring.ring[i].resent), len(ring.ring[i].drops))
			}
		}
		for _, st := range m.decode.strata {
			if len(st.refs.legs) > c.MaxLegs+1 || st.window.len() > c.Window || len(st.held) > c.CloseAfter {
				t.Errorf("%d references, %d samples, %d held", len(st.refs.legs), st.window.len(), len(st.held))
			}
		}
	}
	for _, q := range d.drops.queues {
		if len(q.steps) > maxDropSteps {
			t.Errorf("%d steps of a queue", len(q.steps))
		}
	}
	for _, l := range d.store.legs.all {
		if len(l.classes) > maxClasses || len(l.resends.ring) > maxResends || len(l.failed.ring) > maxFailures || len(l.sums.slots) > 1000 {
			t.Fatalf("%s: %d classes, %d retransmits, %d failures, %d sums", l.name, len(l.classes), len(l.resends.ring), len(l.failed.ring), len(l.sums.slots))
		}
	}
}

// size of a stratum and of what is kept of its series beside it.
func (s *stratum) size() int {
	return int(unsafe.Sizeof(*s)) + int(unsafe.Sizeof(sample{}))*(cap(s.window.ring)+cap(s.held)) + 8*cap(s.window.sorted) +
		int(unsafe.Sizeof(legReference{}))*cap(s.refs.legs)
}

// A stratum takes what the contract gives a series, with everything that hangs
// on it: its window, held samples, and what 100 legs usually take. Each further
// leg that its requests use is 80 bytes.
func TestSeriesSize(t *testing.T) {
	d := New(DefaultConfig())
	now := int64(1_800_000_000e9)
	for i := range 1000 {
		now += 1e9
		for l := range 100 {
			d.Exchange(event.Exchange{Leg: fmt.Sprint(l), SendNS: now - 3e8 + int64(l)*1e6, Duration: 5e5, FirstByte: 1e5, Ack: 1e4, RequestBytes: 9, ReplyBytes: 9})
		}
		rate := 100 + float64(i%10)
		if i%50 == 49 {
			rate = 20 // and some are held back
		}
		d.Request(event.Request{ID: "r", Source: "s", Model: "m", StartNS: now - 32e7, FirstTokenNS: now - 32e7, EndNS: now, GeneratedTokens: 32, DecodeRate: rate, Concurrency: 1, Outcome: event.OutcomeOK})
		d.Advance(now)
	}
	s := &d.order[0].decode
	if len(s.strata) != 2 || len(s.strata[0].refs.legs) != 100 {
		t.Fatalf("%d strata, %d references", len(s.strata), len(s.strata[0].refs.legs))
	}
	for _, st := range s.strata {
		t.Logf("stratum %+v: %d bytes", st.key, st.size())
		if st.size() > 16<<10 {
			t.Errorf("%d bytes in one stratum, want at most 16 KiB", st.size())
		}
	}
	if n := int(unsafe.Sizeof(legReference{})); n > 80 {
		t.Errorf("%d bytes for a leg's reference, want at most 80", n)
	}
}

// A detector that has seen everything once does not grow: 90,000 requests
// later, in which models, fingerprints and load change all the time, it holds
// as much.
func TestMemoryIsFlat(t *testing.T) {
	c := DefaultConfig()
	c.MaxModels, c.MaxStrata, c.MaxRecords = 8, 128, 8192
	d := New(c)
	now, serial := int64(1_800_000_000e9), 0
	play := func(n int) {
		for range n {
			serial++
			now += 100e3 // 10,000 a second
			r := event.Request{
				ID: "r", Source: "s", Model: fmt.Sprint("m", serial%7), StartNS: now - 9e6, FirstTokenNS: now - 8e6, EndNS: now, PromptTokens: 80, PrefillRate: 1e5,
				GeneratedTokens: 32 << (serial % 3), DecodeRate: 4000, Outcome: event.OutcomeOK, Concurrency: float64(1 + serial/1000%9),
			}
			switch serial % 5 {
			case 0:
				r.Concurrency = 0
			case 1:
				r.Fingerprint = fmt.Sprint("b", serial/5000%6)
			}
			if serial%10_000 < 50 {
				r.DecodeRate = 400 // an episode now and then
			}
			d.Request(r)
			if serial%4 == 0 {
				d.Exchange(event.Exchange{Leg: fmt.Sprint(serial / 4 % 40), SendNS: now - 1e6, Duration: 9e5, FirstByte: 1e5, Ack: 1e4, RequestBytes: 1 << (serial / 4 % 20), ReplyBytes: 9, Flow: event.Flow{Socket: 1}})
				d.Retransmit(event.Retransmit{Leg: fmt.Sprint(serial / 4 % 40), TimeNS: now, Kind: event.RetransmitTLP})
			}
			if serial%1000 == 0 {
				d.Qdisc(event.Qdisc{TimeNS: now, Device: "eth0", Handle: "1:", Packets: uint64(serial), Drops: uint64(serial / 100)})
				d.Advance(now)
			}
			if serial%10_000 == 0 {
				d.Correlations()
			}
		}
	}
	held := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	play(60_000)
	before := held()
	play(90_000)
	after := held()
	t.Logf("%d KiB, later %d KiB", before>>10, after>>10)
	if after > before+before/4+1<<20 {
		t.Errorf("%d KiB, later %d KiB", before>>10, after>>10)
	}
	if s := d.Stats(); s.Requests < 125_000 {
		t.Errorf("%+v", s)
	}
	runtime.KeepAlive(d)
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

// The newest closed episodes are kept, and an episode of a thousand requests
// lists the first of them and counts the rest.
func TestEpisodesAreBounded(t *testing.T) {
	d := New(DefaultConfig())
	for i := range int64(maxPastEpisodes + 50) {
		d.remember(event.Episode{StartNS: i, EndNS: i + 1})
	}
	if len(d.past) != maxPastEpisodes || d.past[0].StartNS != 50 || d.past[maxPastEpisodes-1].StartNS != maxPastEpisodes+49 {
		t.Errorf("%d episodes, from %d to %d", len(d.past), d.past[0].StartNS, d.past[len(d.past)-1].StartNS)
	}
	feed := func(i int, rate float64) {
		end := int64(1_800_000_000e9) + int64(i)*1e9
		d.Request(event.Request{
			ID: fmt.Sprint(i), Source: "s", Model: "m", StartNS: end - 9e8, FirstTokenNS: end - 8e8, EndNS: end,
			GeneratedTokens: 32, DecodeRate: rate, Outcome: event.OutcomeOK, Concurrency: 1,
		})
		d.Advance(end)
	}
	const fast, slow = 100, maxEpisodeIDs + 100
	for i := range fast {
		feed(i, 40)
	}
	for i := range slow {
		feed(fast+i, 4)
	}
	d.Flush()
	all := d.Episodes()
	open := all[len(all)-1]
	if len(open.RequestIDs) != maxEpisodeIDs || open.Slow != slow {
		t.Errorf("%d ids of %d slow requests, want %d of %d", len(open.RequestIDs), open.Slow, maxEpisodeIDs, slow)
	}
}
