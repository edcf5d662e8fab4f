package main

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"grayfail/collector/legs"
	"grayfail/detector"
	"grayfail/ebpf"
	"grayfail/event"
	"grayfail/export"
)

// TestPaceKeepsRoomInTheRing: at any steady rate up to the contract's (256 legs
// with 1,000 exchanges a second each) the ring is never more than half full,
// from whatever turn on; below what it holds in a usual turn nothing hurries.
func TestPaceKeepsRoomInTheRing(t *testing.T) {
	for _, perSecond := range []int{0, 1, 100, 5000, 10_000, 60_000, 72_000, 100_000, 256_000} {
		since := drainInterval
		for turn := range 20 {
			taken := min(ebpf.RingExchanges, int(since.Seconds()*float64(perSecond)))
			next := pace(taken, since)
			if expected := next.Seconds() * float64(perSecond); turn > 0 && expected > ebpf.RingExchanges/2 {
				t.Errorf("%d a second, turn %d: %v until the next, %.0f of %d", perSecond, turn, next, expected, ebpf.RingExchanges)
			}
			if next < hurriedInterval || next > drainInterval || perSecond <= 5000 && next != drainInterval {
				t.Errorf("%d a second: %v until the next", perSecond, next)
			}
			since = next
		}
	}
}

// busyPipeline has n legs that all have exchanges, and no probes.
func busyPipeline(b *testing.B, legsN int) (p *pipeline, fill func(now time.Time, exchanges int)) {
	b.Helper()
	metrics, err := export.New(export.Options{Registerer: prometheus.NewRegistry()})
	if err != nil {
		b.Fatal(err)
	}
	p = &pipeline{
		probes: &ebpf.Probes{}, legs: legs.New(legs.Config{Ports: []uint16{50052}, Max: maxLegs}), metrics: metrics, log: export.NewLog(zerolog.Nop()),
		api: export.NewAPI(func(*event.Leg) string { return "" }), status: newStatuses("tcp_events"), now: time.Now, det: detector.New(detector.DefaultConfig()),
	}
	flows := make([]event.Flow, legsN)
	for i := range flows {
		flows[i] = event.Flow{Socket: uint64(i + 1), Local: netip.MustParseAddrPort("10.0.0.1:40000"), Peer: netip.MustParseAddrPort(fmt.Sprintf("10.1.%d.%d:50052", i/250, 1+i%250))}
	}
	return p, func(now time.Time, exchanges int) {
		p.events.Reset()
		for i := range exchanges {
			p.events.Exchanges = append(p.events.Exchanges, event.Exchange{
				Flow: flows[i%legsN], SendNS: now.UnixNano() - 100e6 + int64(i)*99e6/int64(exchanges), Duration: 300e3, FirstByte: 200e3, Ack: 10e3, RequestBytes: 321, ReplyBytes: 2048,
			})
		}
	}
}

// BenchmarkTurn is one turn of 100 ms with 100 exchanges of each leg in it:
// 1,000 a second. core-s/s is the part of a core that this rate takes, without
// what reading the ring does.
func BenchmarkTurn(b *testing.B) {
	for _, n := range []int{16, 64, 256} {
		b.Run(fmt.Sprintf("legs=%d", n), func(b *testing.B) {
			p, fill := busyPipeline(b, n)
			now := time.Unix(1_800_000_000, 0)
			turn := func() {
				now = now.Add(100 * time.Millisecond)
				b.StopTimer()
				fill(now, 100*n)
				p.submitRequest(event.Request{
					ID: "r", Source: "main", Model: "m", StartNS: now.UnixNano() - 100e6, FirstTokenNS: now.UnixNano() - 99e6, EndNS: now.UnixNano(),
					GeneratedTokens: 32, DecodeRate: 323, Outcome: event.OutcomeOK, Concurrency: 1,
				})
				b.StartTimer()
				p.take(now)
			}
			for range 30 {
				turn()
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				turn()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(100*n), "ns/exchange")
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*10, "core-s/s")
		})
	}
}
