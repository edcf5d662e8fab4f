package detector_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"grayfail/detector"
	"grayfail/event"
)

// change edits every record; a nil result leaves it out.
func change(in []event.Record, exchange func(*event.Exchange) bool, rest func(event.Record) bool) []event.Record {
	var out []event.Record
	for _, rec := range in {
		keep := true
		if e, ok := rec.(*event.Exchange); ok {
			keep = exchange == nil || exchange(e)
		} else if rest != nil {
			keep = rest(rec)
		}
		if keep {
			out = append(out, rec)
		}
	}
	return out
}

// TestAttacks disturbs the recordings. Whatever is named must be true; how
// much must still be named is part of each attack.
func TestAttacks(t *testing.T) {
	all := make(map[string][]event.Record)
	for _, want := range recordings {
		all[want.file] = parse(t, want.file)
	}
	for _, attack := range []struct {
		name string
		// named is the least part of the slow requests of a recording with a
		// faulty leg that must still be named.
		named float64
		do    func(*rand.Rand, []event.Record) []event.Record
		// cause says that a changed cause is allowed on the right leg.
		cause bool
	}{
		{name: "one exchange in 100 is missing", named: 0.85, do: func(r *rand.Rand, in []event.Record) []event.Record {
			return change(in, func(*event.Exchange) bool { return r.IntN(100) > 0 }, nil)
		}},
		// What is lost with one in ten may be the very exchange that stalled.
		{name: "one exchange in 10 is missing", named: 0.6, do: func(r *rand.Rand, in []event.Record) []event.Record {
			return change(in, func(*event.Exchange) bool { return r.IntN(10) > 0 }, nil)
		}},
		{name: "no retransmits are seen", named: 0.9, do: func(_ *rand.Rand, in []event.Record) []event.Record {
			return change(in, func(e *event.Exchange) bool { e.Retransmits, e.DSACKs = 0, 0; return true },
				func(rec event.Record) bool { _, is := rec.(*event.Retransmit); return !is })
		}},
		{name: "segments out of order are not counted", named: 0.6, do: func(_ *rand.Rand, in []event.Record) []event.Record {
			return change(in, func(e *event.Exchange) bool { e.OutOfOrder = 0; return true }, nil)
		}},
		{name: "DSACKs come an exchange late", named: 0.9, do: func(_ *rand.Rand, in []event.Record) []event.Record {
			late := make(map[string]uint32)
			return change(in, func(e *event.Exchange) bool {
				e.DSACKs, late[e.Leg] = late[e.Leg], e.DSACKs
				return true
			}, nil)
		}},
		{name: "every exchange is seen twice", named: 0.9, do: func(_ *rand.Rand, in []event.Record) []event.Record {
			var out []event.Record
			for _, rec := range in {
				out = append(out, rec)
				if e, ok := rec.(*event.Exchange); ok {
					again := *e
					out = append(out, &again)
				}
			}
			return out
		}},
		{name: "an open look at each exchange before it ends", named: 0.9, do: func(_ *rand.Rand, in []event.Record) []event.Record {
			var out []event.Record
			for _, rec := range in {
				if e, ok := rec.(*event.Exchange); ok {
					look := *e
					look.Open, look.Duration, look.FirstByte, look.Stall, look.ReplyBytes = true, e.Duration/2, 0, 0, 0
					out = append(out, &look)
				}
				out = append(out, rec)
			}
			return out
		}},
		{name: "clocks of exchanges and requests differ by 300 us", named: 0.9, do: func(_ *rand.Rand, in []event.Record) []event.Record {
			return change(in, func(e *event.Exchange) bool { e.SendNS += 300e3; return true }, nil)
		}},
		// Stalls of 70 ms become as long as timeouts: some are withheld.
		{name: "everything takes three times as long", named: 0.6, cause: true, do: func(_ *rand.Rand, in []event.Record) []event.Record {
			return scale(in, 3)
		}},
		{name: "everything takes half as long", named: 0.5, cause: true, do: func(_ *rand.Rand, in []event.Record) []event.Record {
			return scale(in, 0.5)
		}},
		{name: "a third leg is busy for reasons of its own", named: 0.9, do: func(r *rand.Rand, in []event.Record) []event.Record {
			return append(in, stranger(r, in)...)
		}},
		{name: "lines come up to a second late", named: 0.9, do: func(r *rand.Rand, in []event.Record) []event.Record {
			late := make(map[event.Record]int64)
			for _, rec := range in {
				late[rec] = knownAt(rec) + r.Int64N(1e9)
			}
			slices.SortStableFunc(in, func(a, b event.Record) int { return cmp.Compare(late[a], late[b]) })
			return in
		}},
		{name: "the recording begins late", named: 0, do: func(_ *rand.Rand, in []event.Record) []event.Record {
			return in[len(in)/8:]
		}},
		{name: "each exchange is 10% off", named: 0.85, do: func(r *rand.Rand, in []event.Record) []event.Record {
			return change(in, func(e *event.Exchange) bool {
				e.Duration = max(e.FirstByte, time.Duration(float64(e.Duration)*(0.9+0.2*r.Float64())))
				e.Stall = min(e.Stall, e.Duration)
				return true
			}, nil)
		}},
	} {
		t.Run(attack.name, func(t *testing.T) {
			for _, want := range recordings {
				random := rand.New(rand.NewPCG(7, uint64(len(want.file))))
				records := attack.do(random, copyOf(all[want.file]))
				rows := slowRows(t, play(detector.DefaultConfig(), records))
				named := 0
				for _, row := range rows {
					if row.Leg == "" && (row.Cause != event.CauseLocal || want.cause == event.CauseLocal) {
						continue
					}
					named++
					if row.Leg != want.leg || (!attack.cause && row.Cause != want.cause) {
						t.Errorf("%s %s: named %s %q (%s), true is %v %q", want.file, row.ID, row.Cause, row.Leg, row.Detail, want.cause, want.leg)
					}
				}
				if want.slow == 0 && len(rows) > 0 {
					t.Errorf("%s: %d slow, want none", want.file, len(rows))
				}
				if want.leg != "" && float64(named) < attack.named*float64(want.slow) {
					t.Errorf("%s: %d of %d named, want %.0f%%", want.file, named, want.slow, attack.named*100)
				}
			}
		})
	}
}

// scale stretches time.
func scale(in []event.Record, by float64) []event.Record {
	origin := knownAt(in[0])
	at := func(ns int64) int64 { return origin + int64(float64(ns-origin)*by) }
	span := func(d time.Duration) time.Duration { return time.Duration(float64(d) * by) }
	return change(in, func(e *event.Exchange) bool {
		e.SendNS = at(e.SendNS)
		e.Duration, e.FirstByte, e.Ack, e.Stall, e.RTT = span(e.Duration), span(e.FirstByte), span(e.Ack), span(e.Stall), span(e.RTT)
		return true
	}, func(rec event.Record) bool {
		switch x := rec.(type) {
		case *event.Request:
			x.StartNS, x.FirstTokenNS, x.EndNS = at(x.StartNS), at(x.FirstTokenNS), at(x.EndNS)
			x.DecodeRate, x.PrefillRate = x.DecodeRate/by, x.PrefillRate/by
		case *event.Retransmit:
			x.TimeNS = at(x.TimeNS)
		}
		return true
	})
}

// stranger makes the exchanges of a leg that has nothing to do with the
// requests: busy a tenth of the time, with long stalls of its own.
func stranger(r *rand.Rand, in []event.Record) []event.Record {
	var out []event.Record
	last := knownAt(in[len(in)-1])
	for at := knownAt(in[0]); at < last; {
		d := time.Duration(1e6 + r.Int64N(4e6))
		out = append(out, &event.Exchange{
			Leg: "db", SendNS: at, Duration: d, FirstByte: d / 2, Ack: 40e3, RequestBytes: 300, ReplyBytes: 9000, RTT: 60e3,
		})
		at += int64(10*d) + r.Int64N(1e6)
	}
	return out
}

// Swapping the names of the legs swaps the names in the answers, and nothing
// else.
func TestLegNamesDoNotMatter(t *testing.T) {
	swap := strings.NewReplacer("rpc-a", "rpc-b", "rpc-b", "rpc-a")
	for _, want := range recordings {
		records := parse(t, want.file)
		swapped := change(copyOf(records), func(e *event.Exchange) bool { e.Leg = swap.Replace(e.Leg); return true }, func(rec event.Record) bool {
			if r, ok := rec.(*event.Retransmit); ok {
				r.Leg = swap.Replace(r.Leg)
			}
			return true
		})
		a, b := play(detector.DefaultConfig(), records), play(detector.DefaultConfig(), swapped)
		for i := range b {
			row := &b[i]
			row.Leg, row.Detail = swap.Replace(row.Leg), swap.Replace(row.Detail)
			legs := make(map[string]float64)
			for name, ms := range row.LegsMS {
				legs[swap.Replace(name)] = ms
			}
			row.LegsMS = legs
		}
		if diff := gocmp.Diff(a, b, approximately, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", want.file, diff)
		}
	}
}

// Two models with different speeds over the same legs: each keeps its own
// baseline.
func TestTwoModelsOnOneLeg(t *testing.T) {
	named := func(records []event.Record) (out []string) {
		for _, row := range slowRows(t, play(detector.DefaultConfig(), records)) {
			out = append(out, row.ID+" "+string(row.Cause)+" "+row.Leg)
		}
		return out
	}
	first, second := parse(t, "loss5_fromB"), parse(t, "v070_loss5_fromB")
	want := append(named(first), named(second)...)
	if diff := gocmp.Diff(want, named(append(first, second...))); diff != "" {
		t.Error(diff)
	}
}

// What is kept as sums says the same as what is kept one by one: all but the
// newest exchanges are folded before a request is judged.
func TestSumsSayTheSame(t *testing.T) {
	folded := detector.DefaultConfig()
	folded.RecordSpan = time.Millisecond
	for _, want := range recordings {
		records := parse(t, want.file)
		a := slowRows(t, play(detector.DefaultConfig(), records))
		b := slowRows(t, play(folded, records))
		if len(a) != len(b) {
			t.Fatalf("%s: %d slow, folded %d", want.file, len(a), len(b))
		}
		for i := range a {
			if a[i].Cause != b[i].Cause || a[i].Leg != b[i].Leg || math.Abs(a[i].ExcessMS-b[i].ExcessMS) > 1e-9 {
				t.Errorf("%s %s: %s %q, folded %s %q (%s)", want.file, a[i].ID, a[i].Cause, a[i].Leg, b[i].Cause, b[i].Leg, b[i].Detail)
			}
			for leg, ms := range a[i].LegsMS {
				// Half a slot at each end of the phase.
				if math.Abs(ms-b[i].LegsMS[leg]) > 60 {
					t.Errorf("%s %s: %s took %.1f ms more, folded %.1f ms", want.file, a[i].ID, leg, ms, b[i].LegsMS[leg])
				}
			}
		}
	}
}

var approximately = gocmp.Comparer(func(a, b float64) bool { return a == b || math.Abs(a-b) < 1e-6 })
