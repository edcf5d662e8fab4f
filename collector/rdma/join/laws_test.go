package join

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"grayfail/collector/legs"
	"grayfail/event"
)

// TestLaws: whatever is read in whatever order, a leg without GID is as TCP
// says, a fallback has a port and a reason, and nothing runs over RDMA without
// a queue pair that was listed once.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(Options{Process: func(int) Process {
			return Process{Limited: rapid.Bool().Draw(r, "limited"), MemlockBytes: 8 << 20, PinnedBytes: 4 << 20}
		}}, map[string]string{"w1": "tcp"})
		plain := legs.New(legs.Config{Ports: []uint16{50052}})
		at, everReady := 0.0, false
		for range rapid.IntRange(1, 20).Draw(r, "looks") {
			at += rapid.Float64Range(0, 4).Draw(r, "pause")
			s := step{at: at, stale: rapid.Bool().Draw(r, "stale"), off: rapid.IntRange(0, 9).Draw(r, "off") == 0}
			if rapid.IntRange(0, 4).Draw(r, "partly") == 0 {
				s.missing = []string{"mlx4_0"}
			}
			if rapid.IntRange(0, 4).Draw(r, "no devices") == 0 {
				s.ports = []event.RDMAPort{}
			}
			for range rapid.IntRange(0, 4).Draw(r, "pairs") {
				where := rapid.SampledFrom([]string{"mlx4_0/1", "mlx4_0/2", "rxe0/1", "mlx4_0/0"}).Draw(r, "where")
				state := rapid.SampledFrom([]string{"RESET", "INIT", "RTR", "RTS", "ERR"}).Draw(r, "state")
				s.pairs = append(s.pairs, qp(where+" "+state, rapid.SampledFrom([]int{engine, engine, 9, 0}).Draw(r, "pid")))
				everReady = everReady || state == "RTS"
			}
			for _, number := range []string{"1", "2", "3"} {
				if rapid.IntRange(0, 5).Draw(r, "gone") == 0 {
					continue
				}
				s.sockets = append(s.sockets, sock{
					peer: number, cookie: rapid.Uint64Range(1, 2).Draw(r, "cookie"),
					local:   rapid.SampledFrom([]string{port1, port1v6, port2, second, bridge}).Draw(r, "local"),
					payload: rapid.SampledFrom([]uint64{0, 100, mega}).Draw(r, "payload"),
					moves:   rapid.Bool().Draw(r, "moves"), nobody: rapid.IntRange(0, 5).Draw(r, "nobody") == 0,
				})
			}
			w.look(&s)
			var sockets []event.TCPSocket
			for _, sk := range s.sockets {
				sockets = append(sockets, sk.event())
			}
			plain.Update(seconds(at), sockets, []legs.NetnsInfo{hostNet})
			byTCP := make(map[string]event.Leg)
			for _, l := range plain.Legs() {
				byTCP[l.Peer.String()] = l
			}
			for _, l := range w.table.Legs() {
				if !slices.Contains(event.Transports, l.Transport) || (l.RDMADevice == "") != (l.RDMAPort == 0) {
					r.Fatalf("%+v", l)
				}
				tcp, connected := byTCP[l.Peer.String()]
				switch {
				case l.Connections == 0:
				case l.Transport == event.TransportFallback && (l.Reason == "" || l.RDMAPort == 0 || l.Expected == legs.ExpectTCP):
					r.Fatalf("%+v", l)
				case l.Transport == event.TransportRDMA && (!everReady || l.RDMAPort == 0):
					r.Fatalf("%+v", l)
				case connected && l.RDMAPort == 0 && l.Transport != tcp.Transport:
					r.Fatalf("no GID: %+v, TCP says %s", l, tcp.Transport)
				}
			}
		}
	})
}

// TestBounded: legs and queue pairs that come and go leave nothing behind
// beyond a limit.
func TestBounded(t *testing.T) {
	j := New(Options{})
	for i := range 5000 {
		now := int64(i+1) * 1e6
		j.Reading(event.RDMA{TimeNS: now, QueuePairsNS: now, Ports: cards(), QueuePairs: []event.QueuePair{{Device: "mlx4_0", LQPN: uint32(i), Type: "RC", State: "RESET", PID: i + 1}}})
		j.Join(now, legs.Facts{}, &event.Leg{Name: string(rune(0x4e00 + i)), Local: addr(port1)})
	}
	if len(j.legs) > maxLegs || len(j.resets.byPair) > maxResets {
		t.Errorf("%d legs, %d resets", len(j.legs), len(j.resets.byPair))
	}
}

// TestOtherPlaces: where an address alone does not tell the port.
func TestOtherPlaces(t *testing.T) {
	ib := event.RDMAPort{Device: "mlx5_0", Port: 1, Netdev: "ib0", LinkLayer: "InfiniBand", Protocol: "ib", Active: true, GIDsRead: true,
		GIDs: []event.GID{{Addr: addr("fe80::506b:4b03:c5:1234"), Type: "IB/RoCE v1"}}}
	twin := port("rxe1", 1, "ens1f0", gid(port1, "ens1f0"))
	unread := port("mlx5_9", 1, "")
	unread.GIDsRead = false
	for name, c := range map[string]struct {
		ports []event.RDMAPort
		leg   event.Leg
		want  []place
		maybe bool
	}{
		"IPoIB":                                 {[]event.RDMAPort{ib}, event.Leg{Local: addr("10.5.0.1"), Device: "ib0"}, []place{{"mlx5_0", 1}}, false},
		"two devices, one GID":                  {append(cards(), twin), event.Leg{Local: addr(port1), Device: "ens1f0"}, []place{{"mlx4_0", 1}, {"rxe1", 1}}, false},
		"VLAN of the port":                      {cards(), event.Leg{Local: addr(port1), Device: "ens1f0.7"}, []place{{"mlx4_0", 1}}, false},
		"the same address in another namespace": {cards(), event.Leg{Local: addr(port1), Device: "eth0", Netns: "pod"}, nil, false},
		"its netdev in another namespace":       {cards(), event.Leg{Local: addr(port1), Device: "ens1f0", Netns: "pod"}, []place{{"mlx4_0", 1}}, false},
		"zone":                                  {[]event.RDMAPort{port("a", 1, "x", gid("fe80::1", "x"))}, event.Leg{Local: addr("fe80::1%x"), Device: "x"}, []place{{"a", 1}}, false},
		"a table not read":                      {append(cards(), unread), event.Leg{Local: addr(bridge), Device: "br0"}, nil, true},
	} {
		d := indexDevices(c.ports)
		if got := d.home(c.leg.Local, &c.leg); !slices.Equal(got, c.want) || d.maybeHome(&c.leg) != c.maybe {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := reasonOf(t, Options{}, step{ports: append(cards(), unread)}, sock{local: bridge}); got != "unknown gids_not_read" {
		t.Error(got)
	}
}

// TestSharedQueuePair: one of type UD serves every leg of its process.
func TestSharedQueuePair(t *testing.T) {
	ud := qp("mlx4_0/1 RTS", engine)
	ud.Type = "UD"
	sockets := []sock{{peer: "1"}, {peer: "2"}}
	timeline(t, newWorld(Options{}, nil), []step{
		{at: 0, sockets: sockets, pairs: []event.QueuePair{ud}, want: is("w1", "rdma mlx4_0/1", "w2", "rdma mlx4_0/1")},
	})
}
