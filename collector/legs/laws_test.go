package legs

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"grayfail/event"
)

// TestLaws: whatever is read in whatever order, sums never shrink, names are
// unique and stay with their legs, and the table is bounded.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		table := New(Config{Ports: []uint16{50052}, Max: 4, Forget: 20 * time.Second,
			Static: []Static{{Name: "rpc-b", Peer: netip.MustParseAddrPort(peerB)}}})
		sums := make(map[string]event.Leg)
		now := 0.0
		for range rapid.IntRange(1, 30).Draw(r, "looks") {
			now += rapid.Float64Range(0, 15).Draw(r, "pause")
			var list []sock
			for range rapid.IntRange(0, 6).Draw(r, "sockets") {
				list = append(list, sock{
					cookie:   rapid.Uint64Range(1, 4).Draw(r, "cookie"),
					peer:     rapid.SampledFrom([]string{peerB, "10.0.0.3:50052", "10.0.0.4:50052", "10.0.0.5:50052", "10.0.0.6:80"}).Draw(r, "peer"),
					inode:    rapid.SampledFrom([]uint32{ownInode, boxInode}).Draw(r, "inode"),
					state:    event.TCPState(rapid.IntRange(1, 11).Draw(r, "state")),
					acked:    rapid.Uint64Range(0, 9000).Draw(r, "acked"),
					received: rapid.Uint64Range(0, 9000).Draw(r, "received"),
					unacked:  rapid.Uint32Range(0, 2).Draw(r, "unacked"),
					noInfo:   rapid.Bool().Draw(r, "noInfo"),
				})
			}
			nets := [][]NetnsInfo{{ownNet, boxNet}, {ownNet}, {boxNet}, nil, {{Inode: ownInode, Unread: true}, boxNet}}
			table.Update(seconds(now), sockets(list...), rapid.SampledFrom(nets).Draw(r, "nets"))
			legs := table.Legs()
			if len(legs) > 4 {
				r.Fatalf("%d legs", len(legs))
			}
			if !slices.IsSortedFunc(legs, func(a, b event.Leg) int { return strings.Compare(a.Name, b.Name) }) {
				r.Fatal("not sorted")
			}
			present := make(map[string]bool)
			for _, l := range legs {
				if present[l.Name] {
					r.Fatalf("two legs %q", l.Name)
				}
				present[l.Name] = true
				was, known := sums[l.Name]
				if known && (l.BytesAcked < was.BytesAcked || l.BytesReceived < was.BytesReceived || l.FirstSeenNS < was.FirstSeenNS) {
					r.Fatalf("%q shrank from %+v to %+v", l.Name, was, l)
				}
				if known && l.Peer != was.Peer {
					r.Fatalf("%q is another peer now: %v, %v", l.Name, was.Peer, l.Peer)
				}
				if !slices.Contains(event.Transports, l.Transport) || (l.Connections > 0 && l.GoneNS != 0) {
					r.Fatalf("%+v", l)
				}
				sums[l.Name] = l
			}
			for name := range sums {
				if !present[name] {
					delete(sums, name) // forgotten: it may start anew
				}
			}
			if !present["rpc-b"] {
				r.Fatal("the static leg is gone")
			}
			for _, c := range table.Changes() {
				if !present[c.Leg] {
					r.Fatalf("a change of %q, which is no leg", c.Leg)
				}
			}
		}
	})
}

// TestTogether runs everything at once, for the race detector.
func TestTogether(t *testing.T) {
	table := New(Config{Ports: []uint16{50052}, Max: 4})
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 500 {
				peer := fmt.Sprintf("10.0.%d.%d:50052", worker%2, i%6)
				switch worker {
				case 0:
					table.Update(seconds(float64(i)), sockets(sock{peer: peer, acked: uint64(i)}), []NetnsInfo{ownNet})
				case 1:
					if i%50 == 0 {
						table.SetConfig(Config{Ports: []uint16{50052}, Max: 4, Static: []Static{{Name: "s", Peer: netip.MustParseAddrPort(peer)}}})
					}
					table.Legs()
					table.Changes()
					table.HostAddresses()
				default:
					if table.Name(flow(peer)) == "" {
						t.Error("a leg without a name")
					}
					table.Connection(event.Connection{EndNS: seconds(float64(i)), Flow: flow(peer)})
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkName(b *testing.B) {
	table := New(Config{Ports: []uint16{50052}})
	flows := make([]event.Flow, 256)
	for i := range flows {
		flows[i] = flow(fmt.Sprintf("10.0.%d.%d:50052", i/16, i%16))
		table.Name(flows[i])
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		table.Name(flows[i%len(flows)])
		i++
	}
}

// BenchmarkUpdate takes in one reading: four sockets a leg, or n of one leg.
func BenchmarkUpdate(b *testing.B) {
	update := func(b *testing.B, n, legs int) {
		table := New(Config{Ports: []uint16{50052}})
		var list []sock
		for i := range n {
			list = append(list, sock{cookie: uint64(i + 1), peer: fmt.Sprintf("10.0.%d.%d:50052", i%legs/16, i%16), acked: uint64(i)})
		}
		reading := sockets(list...)
		b.ReportAllocs()
		now := seconds(0)
		for b.Loop() {
			now += 1e9
			table.Update(now, reading, []NetnsInfo{ownNet})
		}
	}
	for _, n := range []int{16, 64, 256} {
		b.Run(fmt.Sprintf("legs=%d", n), func(b *testing.B) { update(b, 4*n, n) })
	}
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("sockets=%d", n), func(b *testing.B) { update(b, n, 16) })
	}
}
