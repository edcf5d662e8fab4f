package detector

import (
	"fmt"
	"testing"
	"time"

	"grayfail/event"
)

// steady returns a detector whose baselines are warm and whose tables have
// their size, and the time it has come to.
func steady(b *testing.B, perRequest int) (*Detector, int64) {
	b.Helper()
	d := New(DefaultConfig())
	now := int64(1_800_000_000e9)
	for i := range 3000 {
		now += 10e6
		feed(d, i, now, perRequest)
		d.Advance(now)
	}
	return d, now
}

var benchLegs = []string{"rpc-a", "rpc-b"}

// feed gives a request of 8 ms and the exchanges inside it.
func feed(d *Detector, i int, now int64, exchanges int) {
	step := int64(8e6) / int64(max(1, exchanges))
	for k := range exchanges {
		d.Exchange(event.Exchange{
			Leg: benchLegs[k%2], SendNS: now - 8e6 + int64(k)*step, Duration: time.Duration(step * 8 / 10),
			FirstByte: time.Duration(step / 2), Ack: 10e3, RequestBytes: 4096, ReplyBytes: 1024, Flow: event.Flow{Socket: uint64(1 + k%2)},
		})
	}
	d.Request(event.Request{
		ID: "r", Source: "main", Model: "m", StartNS: now - 9e6, FirstTokenNS: now - 8e6, EndNS: now + int64(i%7),
		GeneratedTokens: 32, PromptTokens: 100, DecodeRate: 3950 + float64(i%100), PrefillRate: 90_000 + float64(i%1000), Outcome: event.OutcomeOK, Concurrency: 1,
	})
}

// One request without exchanges: two phases judged and learned.
func BenchmarkRequest(b *testing.B) {
	d, now := steady(b, 0)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now += 100e3 // 10,000 a second
		feed(d, i, now, 0)
		if i%1000 == 0 { // as the pipeline does, every 100 ms
			d.Advance(now)
		}
	}
}

// One request with its exchanges: taken in, shared over the legs, learned and
// folded into sums. ns/exchange is the contract's figure.
func BenchmarkExchange(b *testing.B) {
	for _, per := range []int{50, 200, 1000} {
		b.Run(fmt.Sprintf("exchanges=%d", per), func(b *testing.B) {
			d, now := steady(b, per)
			b.ReportAllocs()
			i := 0
			for ; b.Loop(); i++ {
				now += 10e6
				feed(d, i, now, per)
				if i%10 == 0 {
					d.Advance(now)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(i)/float64(per), "ns/exchange")
		})
	}
}

// Legs that are all busy: 100 exchanges a second each, in turns of 100 ms.
func BenchmarkLegs(b *testing.B) {
	for _, legs := range []int{16, 64, 256} {
		b.Run(fmt.Sprintf("legs=%d", legs), func(b *testing.B) {
			d := New(DefaultConfig())
			now := int64(1_800_000_000e9)
			names := make([]string, legs)
			for i := range names {
				names[i] = fmt.Sprintf("leg-%03d", i)
			}
			exchanges := 10 * legs
			turn := func() {
				now += 100e6
				for k := range exchanges {
					d.Exchange(event.Exchange{
						Leg: names[k%legs], SendNS: now - 100e6 + int64(k)*int64(99e6)/int64(exchanges), Duration: 30e6 / 10, FirstByte: 20e3, Ack: 10e3,
						RequestBytes: 4096, ReplyBytes: 1024, Flow: event.Flow{Socket: uint64(1 + k%legs)},
					})
				}
				d.Request(event.Request{ID: "r", Source: "main", Model: "m", StartNS: now - 100e6, FirstTokenNS: now - 99e6, EndNS: now, GeneratedTokens: 32, DecodeRate: 323, Outcome: event.OutcomeOK, Concurrency: 1})
				d.Advance(now)
			}
			for range 100 {
				turn()
			}
			b.ReportAllocs()
			i := 0
			for ; b.Loop(); i++ {
				turn()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(i)/float64(exchanges), "ns/exchange")
		})
	}
}

// One request of each model or stratum, and what a snapshot wants to know of
// them all.
func BenchmarkStrata(b *testing.B) {
	round := func(b *testing.B, models, strata int) {
		d := New(DefaultConfig())
		now := int64(1_800_000_000e9)
		turn := func() {
			for m := range models {
				for s := range strata {
					now += 1e8
					d.Request(event.Request{
						ID: "r", Source: "main", Model: fmt.Sprint("m", m), StartNS: now - 1e8, FirstTokenNS: now - 99e6, EndNS: now,
						GeneratedTokens: 32, PromptTokens: 100, DecodeRate: 323, PrefillRate: 900, Outcome: event.OutcomeOK, Concurrency: float64(int(1) << s),
					})
				}
			}
			d.Advance(now)
			d.Baselines()
		}
		for range 20 {
			turn()
		}
		b.ReportAllocs()
		for b.Loop() {
			turn()
		}
	}
	for _, n := range []int{4, 16, 64} {
		b.Run(fmt.Sprintf("models=%d", n), func(b *testing.B) { round(b, n, 1) })
	}
	for _, n := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("strata=%d", 16*n), func(b *testing.B) { round(b, 16, n) })
	}
}

// 60,000 records that come newest first, as one long push does.
func BenchmarkNewestFirst(b *testing.B) {
	for _, concurrency := range []float64{0, 1} {
		b.Run(fmt.Sprintf("concurrency %g", concurrency), func(b *testing.B) {
			const n = 60_000
			for b.Loop() {
				d := New(DefaultConfig())
				for i := range int64(n) {
					end := 1_800_000_000e9 - i*1e6
					d.Request(event.Request{ID: "r", Source: "s", Model: "m", StartNS: end - 9e8, FirstTokenNS: end - 8e8, EndNS: end, GeneratedTokens: 32, DecodeRate: 39, Outcome: event.OutcomeOK, Concurrency: concurrency})
				}
				if out := d.Advance(1_800_000_010e9); len(out.Rows) != 2*n {
					b.Fatalf("%d rows", len(out.Rows))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/request")
		})
	}
}

// One second of events that hold a million exchanges, 1,000 a request.
func BenchmarkMillionExchangesASecond(b *testing.B) {
	d, now := steady(b, 1000)
	second := func() {
		for i := range 1000 {
			now += 1e6
			for k := range 1000 {
				d.Exchange(event.Exchange{
					Leg: benchLegs[k%2], SendNS: now - 1e6 + int64(k)*1000, Duration: 800, FirstByte: 500, Ack: 100,
					RequestBytes: 4096, ReplyBytes: 1024, Flow: event.Flow{Socket: uint64(1 + k%2)},
				})
			}
			d.Request(event.Request{
				ID: "r", Source: "main", Model: "m", StartNS: now - 1e6, FirstTokenNS: now - 1e6, EndNS: now,
				GeneratedTokens: 320, PromptTokens: 100, DecodeRate: 320_000, Outcome: event.OutcomeOK, Concurrency: 1,
			})
			if i%100 == 0 {
				d.Advance(now)
			}
		}
	}
	for range 3 {
		second()
	}
	b.ReportAllocs()
	for b.Loop() {
		second()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/exchange")
	b.ReportMetric(float64(b.Elapsed().Seconds())/float64(b.N), "core-s/s")
}

// What the lock is held for while the state is saved.
func BenchmarkSave(b *testing.B) {
	for _, c := range []struct{ models, legs int }{{1, 2}, {8, 16}, {64, 256}} {
		b.Run(fmt.Sprintf("%d models, %d legs", c.models, c.legs), func(b *testing.B) {
			d := New(DefaultConfig())
			now := int64(1_800_000_000e9)
			for i := range 300 * c.models {
				now += 1e8
				for l := range c.legs {
					d.Exchange(event.Exchange{Leg: fmt.Sprint("leg-", l), SendNS: now - 9e7 + int64(l)*1e4, Duration: 1e4, FirstByte: 5e3, Ack: 1e3, RequestBytes: 1 << (i % 6), ReplyBytes: 1024, Flow: event.Flow{Socket: uint64(l + 1)}})
				}
				d.Request(event.Request{
					ID: fmt.Sprint(i), Source: "main", Model: fmt.Sprint("m", i%c.models), StartNS: now - 1e8, FirstTokenNS: now - 9e7, EndNS: now,
					GeneratedTokens: 32, PromptTokens: 100, DecodeRate: 350 + float64(i%9), PrefillRate: 900, Outcome: event.OutcomeOK, Concurrency: float64(int(1) << (i / c.models % 3)),
				})
				d.Advance(now)
			}
			d.Flush()
			var state []byte
			b.ReportAllocs()
			for b.Loop() {
				state = d.Save(state[:0], "")
			}
			b.ReportMetric(float64(len(state)), "bytes")
		})
	}
}
