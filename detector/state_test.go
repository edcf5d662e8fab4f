package detector_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"grayfail/detector"
	"grayfail/event"
)

// restored is what a restart makes of a detector.
func restored(t testing.TB, d *detector.Detector) *detector.Detector {
	t.Helper()
	state := d.Save(nil, "note")
	next := detector.New(d.Config())
	note, _, err := next.Restore(state)
	if err != nil || note != "note" {
		t.Fatalf("restore: note %q, error %v", note, err)
	}
	if again := next.Save(nil, "note"); !bytes.Equal(again, state) {
		t.Fatalf("what was restored is saved differently: %d and %d bytes", len(again), len(state))
	}
	return next
}

// verdictOf is what must not depend on a restart.
type verdictOf struct {
	ID      string
	Phase   event.Phase
	Verdict event.Verdict
	R, Base float64
	Cause   event.Cause
	Leg     string
}

func summarize(rows []event.Row) (out []verdictOf) {
	for _, row := range rows {
		v := verdictOf{ID: row.ID, Phase: row.Phase, Verdict: row.Verdict, Cause: row.Cause, Leg: row.Leg}
		if row.R != nil {
			v.R, v.Base = *row.R, *row.Baseline
		}
		out = append(out, v)
	}
	return out
}

// A restart after any request of a recording changes no verdict, no cause and
// no episode.
func TestRestartChangesNothing(t *testing.T) {
	for _, name := range []string{"loss5_fromB", "delay50B", "slowB_quota15", "conc2_lossB", "slowC_quota3"} {
		records := parse(t, name)
		var ends []int // records after each request
		for i, rec := range records {
			if _, is := rec.(*event.Request); is {
				ends = append(ends, i+1)
			}
		}
		for _, cut := range []int{ends[4], ends[len(ends)/3], ends[len(ends)/2], ends[len(ends)-4]} {
			play := func(restart bool) ([]verdictOf, []event.Episode, []event.Correlation) {
				d := detector.New(detector.DefaultConfig())
				var rows []event.Row
				for i, rec := range records {
					rows = append(rows, d.Advance(knownAt(rec)).Rows...)
					give(d, rec)
					if i+1 == cut {
						rows = append(rows, d.Flush().Rows...)
						if restart {
							d = restored(t, d)
						}
					}
				}
				rows = append(rows, d.Flush().Rows...)
				return summarize(rows), d.Episodes(), d.Correlations()
			}
			wantRows, wantEpisodes, wantCorrelations := play(false)
			rows, episodes, correlations := play(true)
			// Of a request in flight at the cut the retransmits before it are lost.
			inFlight := name == "conc2_lossB"
			if diff := gocmp.Diff(wantCorrelations, correlations); diff != "" && !inFlight {
				t.Errorf("%s cut after record %d: correlations: %s", name, cut, diff)
			}
			if diff := gocmp.Diff(wantRows, rows); diff != "" {
				t.Errorf("%s cut after record %d: without (-) and with a restart (+): %s", name, cut, diff)
			}
			if diff := gocmp.Diff(wantEpisodes, episodes); diff != "" {
				t.Errorf("%s cut after record %d: episodes: %s", name, cut, diff)
			}
		}
	}
}

// A restart in the middle of a fault: the episode keeps its id and its start,
// the baseline stays frozen, and the path is still named.
func TestRestartMidFaultStaysFlagged(t *testing.T) {
	g := newEngine("a", "b")
	d := detector.New(detector.DefaultConfig())
	var rows []event.Row
	feed := func(records []event.Record) {
		for _, rec := range records {
			rows = append(rows, d.Advance(knownAt(rec)).Rows...)
			give(d, rec)
		}
		rows = append(rows, d.Advance(g.nowNS+3e9).Rows...)
		g.nowNS += 3e9
	}
	feed(g.requests(30, "ok"))
	g.fault = late(12 * time.Millisecond)
	feed(g.requests(5, "bad"))
	before := d.Episodes()
	if len(before) != 1 || before[0].EndNS != 0 || before[0].ID == "" {
		t.Fatalf("episodes %+v", before)
	}
	d = restored(t, d)
	g.nowNS += 7 * 3600e9 // longer than MaxAge, in which the host was down
	d.Advance(g.nowNS)
	for _, b := range d.Baselines() {
		if b.Phase == event.PhaseDecode && (b.State != event.BaselineFrozen || b.Samples < 25) {
			t.Errorf("after the restart: %+v", b)
		}
	}
	feed(g.requests(5, "still bad"))
	all(t, of(rows, "still bad", event.PhaseDecode), 5, event.VerdictSlow, event.CauseDelay, "b")
	after := d.Episodes()
	if len(after) != 1 || after[0].ID != before[0].ID || after[0].StartNS != before[0].StartNS || after[0].Slow != 10 || after[0].Leg != "b" {
		t.Errorf("episodes %+v, before the restart %+v", after, before)
	}
	g.fault = nil
	feed(g.requests(12, "well"))
	if after = d.Episodes(); len(after) != 1 || after[0].EndNS == 0 || after[0].ID != before[0].ID {
		t.Errorf("at the end: %+v", after)
	}
	all(t, of(rows, "well", event.PhaseDecode), 12, event.VerdictOK, event.CauseNone, "")
}

// The clock is set while the detector runs: nothing ages by it, in either
// direction, and there and back again.
func TestClockSteps(t *testing.T) {
	const day = int64(24 * 3600e9)
	for _, steps := range [][]int64{{3 * day}, {-3 * day}, {400 * day, -400 * day}, {-2 * day, 9 * day}, {120e9}, {-120e9}} {
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			g := newEngine("a", "b")
			d := detector.New(detector.DefaultConfig())
			var rows []event.Row
			feed := func(records []event.Record) {
				for _, rec := range records {
					rows = append(rows, d.Advance(knownAt(rec)).Rows...)
					give(d, rec)
				}
				g.nowNS += 3e9
				rows = append(rows, d.Advance(g.nowNS).Rows...)
			}
			step := func(delta int64) {
				rows = append(rows, d.ClockStep(delta).Rows...)
				g.nowNS += delta
				rows = append(rows, d.Advance(g.nowNS).Rows...)
			}
			feed(g.requests(30, "ok"))
			for _, delta := range steps {
				step(delta)
				for _, b := range d.Baselines() {
					if b.Phase == event.PhaseDecode && (b.State != event.BaselineReady || b.Samples != 30) {
						t.Errorf("after %d: %+v", delta, b)
					}
				}
			}
			feed(g.requests(3, "ok after"))
			all(t, of(rows, "ok after", event.PhaseDecode), 3, event.VerdictOK, event.CauseNone, "")
			g.fault = late(12 * time.Millisecond)
			feed(g.requests(4, "bad"))
			for _, delta := range steps {
				step(delta)
			}
			feed(g.requests(4, "bad after"))
			all(t, of(rows, "bad after", event.PhaseDecode), 4, event.VerdictSlow, event.CauseDelay, "b")
			if all := d.Episodes(); len(all) != 1 || all[0].EndNS != 0 || all[0].Slow != 8 {
				t.Errorf("episodes %+v", all)
			}
			if s := d.Stats(); s.Rebased != 0 || s.ClockSteps != uint64(2*len(steps)) {
				t.Errorf("%+v", s)
			}
		})
	}
}

// seal makes a state of a payload, as a program gone wrong might.
func seal(version uint16, payload []byte) []byte {
	b := append([]byte("GRAYFAIL"), make([]byte, 16)...)
	binary.LittleEndian.PutUint16(b[8:], version)
	binary.LittleEndian.PutUint64(b[12:], uint64(len(payload)))
	table := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(b[20:], crc32.Update(crc32.Checksum(b[:20], table), table, payload))
	return append(b, payload...)
}

func sampleState(t testing.TB) []byte {
	t.Helper()
	g := newEngine("a", "b")
	d := detector.New(detector.DefaultConfig())
	d.Leg(event.LegChange{TimeNS: g.nowNS, Leg: "b", Transport: event.TransportRDMA, Device: "veth1"})
	records := g.requests(15, "ok")
	g.fault = late(12 * time.Millisecond)
	records = append(records, g.requests(4, "bad")...)
	for _, rec := range records {
		d.Advance(knownAt(rec))
		give(d, rec)
	}
	d.Flush()
	if len(d.Episodes()) == 0 {
		t.Fatal("no episode in the sample")
	}
	return d.Save(nil, "a note")
}

func TestStateIsRefused(t *testing.T) {
	good := sampleState(t)
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 4
	for _, c := range []struct {
		name  string
		state []byte
		want  error
	}{
		{"empty", nil, detector.ErrStateForeign},
		{"text", []byte("offset=12\n"), detector.ErrStateForeign},
		{"gzip", []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0}, detector.ErrStateForeign},
		{"the magic alone", good[:8], detector.ErrStateTruncated},
		{"half a header", good[:20], detector.ErrStateTruncated},
		{"one byte short", good[:len(good)-1], detector.ErrStateTruncated},
		{"one byte long", append(bytes.Clone(good), 0), detector.ErrStateCorrupt},
		{"a bit flipped", flipped, detector.ErrStateCorrupt},
		{"zeros after a power failure", append(bytes.Clone(good[:24]), make([]byte, len(good)-24)...), detector.ErrStateCorrupt},
		{"a newer version", seal(99, []byte("who knows")), detector.ErrStateNewer},
		{"version 0", seal(0, good[24:]), detector.ErrStateCorrupt},
		{"a sound checksum of nonsense", seal(1, []byte("nonsense")), detector.ErrStateCorrupt},
		{"an empty payload", seal(1, nil), detector.ErrStateCorrupt},
	} {
		d := detector.New(detector.DefaultConfig())
		if _, _, err := d.Restore(c.state); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
		if note, _, err := d.Restore(good); err != nil || note != "a note" {
			t.Errorf("after %s: note %q, error %v: it is not as new", c.name, note, err)
		}
		if _, _, err := d.Restore(good); err == nil {
			t.Error("a detector in use was restored over")
		}
	}
	for n := range good { // every place at which a write may end
		if _, _, err := detector.New(detector.DefaultConfig()).Restore(good[:n]); err == nil {
			t.Fatalf("%d of %d bytes were accepted", n, len(good))
		}
	}
}

// Every byte of a state, damaged: the checksum finds it. With a checksum that
// fits again, as a faulty writer's or an attacker's would, it is refused, or
// is a state that can be used and saved: lengths are never believed.
func TestStateWithEveryByteDamaged(t *testing.T) {
	good := sampleState(t)
	refused := 0
	for i := range good {
		for _, mask := range []byte{0x01, 0x80, 0xff} {
			bad := bytes.Clone(good)
			bad[i] ^= mask
			if _, _, err := detector.New(detector.DefaultConfig()).Restore(bad); err == nil {
				t.Fatalf("byte %d of %d ^ %#x was accepted", i, len(good), mask)
			}
			if i < 24 {
				continue // seal writes the header
			}
			d := detector.New(detector.DefaultConfig())
			if _, _, err := d.Restore(seal(1, bad[24:])); err != nil {
				refused++
				if s := d.Stats(); s != (detector.Stats{}) {
					t.Fatalf("byte %d ^ %#x: refused, and still there: %+v", i, mask, s)
				}
				continue
			}
			if _, _, err := detector.New(detector.DefaultConfig()).Restore(d.Save(nil, "")); err != nil {
				t.Fatalf("byte %d ^ %#x: accepted, and cannot be restored: %v", i, mask, err)
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused: are the lengths checked?")
	}
	t.Logf("%d bytes: %d of %d damages under a fitting checksum were refused", len(good), refused, 3*(len(good)-24))
}

// A state from before the bounds were lowered keeps to the new ones.
func TestRestoreKeepsTheBounds(t *testing.T) {
	d := detector.New(detector.DefaultConfig())
	now := int64(1_800_000_000e9)
	for i := range 3000 {
		now += 1e8
		d.Exchange(event.Exchange{Leg: fmt.Sprint("leg-", i%20), SendNS: now - 5e7, Duration: 4e7, RequestBytes: 9, ReplyBytes: 9})
		d.Request(event.Request{
			ID: fmt.Sprint(i), Source: "s", Model: fmt.Sprint("m", i%9), StartNS: now - 1e8, FirstTokenNS: now - 9e7, EndNS: now, GeneratedTokens: 32,
			DecodeRate: 300, Concurrency: float64(int(1) << (i % 3)), Outcome: event.OutcomeOK,
		})
		d.Advance(now)
	}
	state := d.Save(nil, "")
	c := detector.DefaultConfig()
	c.MaxLegs, c.MaxModels, c.MaxStrata, c.Window, c.MinSamples = 5, 4, 11, 16, 10
	small := detector.New(c)
	if _, _, err := small.Restore(state); err != nil {
		t.Fatal(err)
	}
	s := small.Stats()
	if s.Legs > 5 || s.Models != 4 || s.Strata > 11 || s.LegsOverflow == 0 || s.ModelsOverflow != 5 {
		t.Errorf("%+v", s)
	}
	for _, b := range small.Baselines() {
		if b.Samples > 16 {
			t.Errorf("%+v", b)
		}
	}
	small.Request(event.Request{ID: "r", Source: "s", Model: "m0", EndNS: now + 1, GeneratedTokens: 32, DecodeRate: 100, Outcome: event.OutcomeOK, Concurrency: 1})
	if out := small.Advance(now + 3e9); len(out.Rows) != 2 || out.Rows[0].Verdict != event.VerdictSlow {
		t.Errorf("%+v", out.Rows)
	}
}

// FuzzRestore gives bytes as they are, and as the payload of a sound state:
// no crash, and what is accepted is saved and restored as it is, and judges.
func FuzzRestore(f *testing.F) {
	good := sampleState(f)
	f.Add(good, false)
	f.Add(good[24:], true)
	f.Add(good[:len(good)/2], false)
	f.Add(good[24:len(good)/2], true)
	f.Add([]byte("GRAYFAIL"), false)
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0}, true)
	f.Add(bytes.Repeat([]byte{0xff}, 64), true)
	fresh := detector.New(detector.DefaultConfig()).Save(nil, "x")
	f.Add(fresh[24:], true)
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		if sealed {
			data = seal(1, data)
		}
		d := detector.New(detector.DefaultConfig())
		if _, _, err := d.Restore(data); err != nil {
			if s := d.Stats(); s != (detector.Stats{}) {
				t.Fatalf("refused, and still there: %+v", s)
			}
			return
		}
		once := d.Save(nil, "")
		next := detector.New(detector.DefaultConfig())
		if _, _, err := next.Restore(once); err != nil {
			t.Fatalf("what was accepted cannot be restored: %v", err)
		}
		if twice := next.Save(nil, ""); !bytes.Equal(once, twice) {
			t.Fatal("saved differently")
		}
		g := newEngine("a", "b")
		for i, rec := range g.requests(3, "x") {
			rows := d.Advance(knownAt(rec)).Rows
			give(d, rec)
			if i == 40 {
				d.ClockStep(-3600e9)
			}
			slowRows(t, rows)
		}
		slowRows(t, d.Flush().Rows)
		d.Baselines()
		d.Episodes()
		d.Correlations()
		d.Adopt("", "m")
		if s := d.Stats(); s.Legs > 257 || s.Models > 64 || s.Strata > 1024 {
			t.Fatalf("%+v is beyond its bounds", s)
		}
	})
}
