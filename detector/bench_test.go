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
		b.Run(fmt.Sprintf("%d a request", per), func(b *testing.B) {
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

// 256 legs that are all busy.
func BenchmarkManyLegs(b *testing.B) {
	d := New(DefaultConfig())
	now := int64(1_800_000_000e9)
	names := make([]string, 256)
	for i := range names {
		names[i] = fmt.Sprintf("leg-%03d", i)
	}
	turn := func() {
		now += 100e6
		for k := range 2560 {
			d.Exchange(event.Exchange{
				Leg: names[k%256], SendNS: now - 100e6 + int64(k)*39e3, Duration: 30e6 / 10, FirstByte: 20e3, Ack: 10e3,
				RequestBytes: 4096, ReplyBytes: 1024, Flow: event.Flow{Socket: uint64(1 + k%256)},
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
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(i)/2560, "ns/exchange")
}
