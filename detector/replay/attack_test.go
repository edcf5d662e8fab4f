package replay_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"grayfail/event"
)

// parse reads the records of a recording.
func parse(t testing.TB, name string) []event.Record {
	t.Helper()
	var out []event.Record
	for _, line := range load(t, name) {
		rec, err := event.ParseRecord([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rec)
	}
	return out
}

func write(t testing.TB, records []event.Record) []string {
	t.Helper()
	out := make([]string, 0, len(records))
	for _, rec := range records {
		text, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return out
}

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

// knownAt orders records as a recorder would write them.
func knownAt(rec event.Record) int64 {
	switch x := rec.(type) {
	case *event.Request:
		return x.EndNS
	case *event.Exchange:
		return x.SendNS + int64(x.Duration)
	case *event.Retransmit:
		return x.TimeNS
	}
	return 0
}

// TestAttacks disturbs the recordings. Whatever is named must be true; how
// much must still be named is part of each attack.
func TestAttacks(t *testing.T) {
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
		{name: "everything takes three times as long", named: 0.8, cause: true, do: func(_ *rand.Rand, in []event.Record) []event.Record {
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
				records := attack.do(random, parse(t, want.file))
				res := run(t, write(t, records))
				slow, named := 0, 0
				for _, row := range res.Requests {
					checkRow(t, row)
					if row.Verdict != event.VerdictSlow {
						continue
					}
					slow++
					if row.Leg == "" && (row.Cause != event.CauseLocal || slices.Contains(want.causes, event.CauseLocal)) {
						continue
					}
					named++
					if row.Leg != want.leg || (!attack.cause && !slices.Contains(want.causes, row.Cause)) {
						t.Errorf("%s %s: named %s %q (%s), true is %v %q", want.file, row.ID, row.Cause, row.Leg, row.Detail, want.causes, want.leg)
					}
				}
				if want.slow == 0 && slow > 0 {
					t.Errorf("%s: %d slow, want none", want.file, slow)
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
		lines := load(t, want.file)
		swapped := make([]string, len(lines))
		for i, line := range lines {
			swapped[i] = swap.Replace(line)
		}
		a, b := run(t, lines), run(t, swapped)
		for i := range b.Requests {
			row := &b.Requests[i]
			row.Leg, row.Detail = swap.Replace(row.Leg), swap.Replace(row.Detail)
			legs := make(map[string]float64)
			for name, ms := range row.LegsMS {
				legs[swap.Replace(name)] = ms
			}
			row.LegsMS = legs
		}
		if diff := gocmp.Diff(a.Requests, b.Requests, approximately); diff != "" {
			t.Errorf("%s: %s", want.file, diff)
		}
	}
}

// Two models with different speeds, one after the other and interleaved in
// time, over the same legs: each keeps its own baseline.
func TestTwoModelsOnOneLeg(t *testing.T) {
	slow := func(lines []string) string {
		var out []string
		for _, row := range run(t, lines).Requests {
			if row.Verdict == event.VerdictSlow {
				out = append(out, fmt.Sprint(row.ID, " ", row.Cause, " ", row.Leg))
			}
		}
		return strings.Join(out, "\n")
	}
	first, second := parse(t, "loss5_fromB"), parse(t, "v070_loss5_fromB")
	want := slow(write(t, first)) + "\n" + slow(write(t, second))
	if got := slow(write(t, append(first, second...))); got != want {
		t.Errorf("one after the other:\n%s\nwant\n%s", got, want)
	}
}

var approximately = gocmp.Comparer(func(a, b float64) bool { return a == b || max(a-b, b-a) < 1e-6 })
