package detector_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"grayfail/detector"
	"grayfail/event"
)

// batches splits records into turns of the pipeline: what was known within
// 100 ms comes in one turn.
func batches(records []event.Record) (out [][]event.Record, ends []int64) {
	for _, rec := range records {
		at := knownAt(rec)
		if len(ends) == 0 || at >= ends[len(ends)-1] {
			out, ends = append(out, nil), append(ends, at-at%100e6+100e6)
		}
		out[len(out)-1] = append(out[len(out)-1], rec)
	}
	return out, ends
}

func playBatches(all [][]event.Record, ends []int64) []event.Row {
	d := detector.New(detector.DefaultConfig())
	var rows []event.Row
	for i, batch := range all {
		for _, rec := range batch {
			give(d, rec)
		}
		rows = append(rows, d.Advance(ends[i]).Rows...)
	}
	return append(rows, d.Flush().Rows...)
}

// The order of events within a turn does not matter, and neither does an event
// that comes twice.
func TestOrderWithinATurn(t *testing.T) {
	for _, name := range []string{"conc2_lossB", "v070_loss5_fromB", "tbf20_1mb"} {
		turns, ends := batches(parse(t, name))
		want := playBatches(turns, ends)
		for seed := range uint64(3) {
			random := rand.New(rand.NewPCG(seed, 1))
			for i := range turns {
				if seed == 1 {
					turns[i] = append(turns[i], turns[i]...)
				}
				random.Shuffle(len(turns[i]), func(a, b int) { turns[i][a], turns[i][b] = turns[i][b], turns[i][a] })
			}
			if diff := gocmp.Diff(want, playBatches(turns, ends), approximately); diff != "" {
				t.Fatalf("%s, seed %d: %s", name, seed, diff)
			}
		}
	}
}

// Requests of equal times are judged alike whatever order they come in.
func TestEqualTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(12, 40).Draw(t, "n")
		var requests []event.Record
		for i := range n {
			end := int64(1_800_000_000e9) + int64(rapid.IntRange(0, 6).Draw(t, "end"))*1e9
			requests = append(requests, &event.Request{
				ID: fmt.Sprint(i), Source: "s", Model: rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model"),
				StartNS: end - 1e9, FirstTokenNS: end - 9e8, EndNS: end, GeneratedTokens: 32, Outcome: event.OutcomeOK,
				DecodeRate: float64(rapid.SampledFrom([]int{10, 40, 60, 100}).Draw(t, "rate")), Concurrency: 1,
			})
		}
		judge := func(in []event.Record) []event.Row {
			d := detector.New(detector.DefaultConfig())
			for _, rec := range in {
				give(d, rec)
			}
			return d.Flush().Rows
		}
		if diff := gocmp.Diff(judge(requests), judge(rapid.Permutation(requests).Draw(t, "order"))); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Whatever comes in, in whatever order, up to 30 seconds late: no crash, never
// ok without data, never a name without evidence, and the sum is exact.
func TestAnyEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := detector.DefaultConfig()
		cfg.MaxLegs, cfg.MaxModels, cfg.MaxStrata, cfg.MaxPending, cfg.MaxRecords = 3, 2, 6, 20, 64
		cfg.MinSamples = 5
		d := detector.New(cfg)
		now := int64(1_800_000_000e9)
		span := rapid.Int64Range(0, 40e9)
		leg := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "other"})
		small := rapid.Uint32Range(0, 3)
		evident := make(map[string]bool)
		var rows []event.Row
		steps := rapid.IntRange(1, 250).Draw(t, "steps")
		for i := range steps {
			at := now - rapid.Int64Range(0, 30e9).Draw(t, "late")
			name := leg.Draw(t, "leg")
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0, 1, 2:
				r := event.Request{
					ID: fmt.Sprint(i), Source: "s", Model: rapid.SampledFrom([]string{"m", "n", "o"}).Draw(t, "model"), EndNS: at,
					GeneratedTokens: rapid.IntRange(0, 40).Draw(t, "tokens"), PromptTokens: rapid.IntRange(0, 200).Draw(t, "prompt"),
					DecodeRate: rapid.SampledFrom([]float64{0, 1, 10, 1e9}).Draw(t, "rate"), PrefillRate: rapid.SampledFrom([]float64{0, 1, 500}).Draw(t, "prefill"),
					Outcome: rapid.SampledFrom(event.Outcomes).Draw(t, "outcome"), Concurrency: rapid.SampledFrom([]float64{0, 1, 2, 1e6}).Draw(t, "concurrency"),
				}
				if rapid.Bool().Draw(t, "times") {
					r.StartNS = max(1, at-span.Draw(t, "start"))
					r.FirstTokenNS = r.StartNS + rapid.Int64Range(0, at-r.StartNS).Draw(t, "first")
				}
				d.Request(r)
			case 3, 4, 5, 6:
				duration := time.Duration(span.Draw(t, "duration"))
				d.Exchange(event.Exchange{
					Leg: name, SendNS: at - int64(duration), Duration: duration, FirstByte: time.Duration(span.Draw(t, "first")), Ack: time.Duration(span.Draw(t, "ack")),
					Stall: time.Duration(span.Draw(t, "stall")), RequestBytes: uint64(small.Draw(t, "request")) << 12, ReplyBytes: uint64(small.Draw(t, "reply")) << 10,
					OutOfOrder: small.Draw(t, "ooo"), Retransmits: small.Draw(t, "rtx"), DSACKs: small.Draw(t, "dsack"), Open: rapid.Bool().Draw(t, "open"),
					Flow: event.Flow{Socket: uint64(small.Draw(t, "socket"))},
				})
				evident[name] = true
			case 7:
				d.Retransmit(event.Retransmit{Leg: name, TimeNS: at, Kind: rapid.SampledFrom(event.RetransmitKinds).Draw(t, "kind"), Side: event.SideCoordinator})
				d.Connection(event.Connection{Leg: name, EndNS: at})
				evident[name] = true
			case 8:
				d.Qdisc(event.Qdisc{TimeNS: at, Device: "v", Handle: "1:", Packets: uint64(small.Draw(t, "packets")), Drops: uint64(small.Draw(t, "drops"))})
				d.Leg(event.LegChange{TimeNS: at, Leg: name, Transport: rapid.SampledFrom(event.Transports).Draw(t, "transport"), Device: "v", RDMADevice: name, RDMAPort: 1})
				if n := small.Draw(t, "retries"); n > 0 {
					d.RDMA(event.RDMAStep{FromNS: at - 1, TimeNS: at, Device: name, Port: 1, Event: "e", Meaning: rapid.SampledFrom(event.RDMAMeanings).Draw(t, "meaning"), Count: uint64(n)})
					evident[name] = true
				}
			case 9:
				now += span.Draw(t, "step")
				rows = append(rows, d.Advance(now).Rows...)
			}
		}
		rows = append(rows, d.Flush().Rows...)
		for _, row := range slowRows(t, rows) {
			if row.Leg != "" && (!evident[row.Leg] || row.Leg == "other") {
				t.Fatalf("%s: %s names %q without evidence", row.ID, row.Cause, row.Leg)
			}
		}
		d.Baselines()
		d.Correlations()
		for _, e := range d.Episodes() {
			if e.Cause.NamesPath() != (e.Leg != "") || e.Slow > e.Requests {
				t.Fatalf("episode %+v", e)
			}
		}
		if s := d.Stats(); s.Legs > 4 || s.Models > 2 || s.Strata > 6 || s.Pending != 0 || s.Exchanges > 64 {
			t.Fatalf("%+v is beyond its bounds", s)
		}
	})
}
