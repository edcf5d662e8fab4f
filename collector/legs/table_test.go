package legs

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
	"grayfail/internal/bound"
)

func names(table *Table) (out []string) {
	for _, l := range table.Legs() {
		out = append(out, l.Name)
	}
	return out
}

func flow(peer string) event.Flow { return sock{peer: peer}.event().Flow }

func TestName(t *testing.T) {
	cfg := Config{
		Ports:  []uint16{50052, 50053},
		Static: []Static{{Name: "rpc-b", Peer: netip.MustParseAddrPort(peerB)}, {Name: "far", Peer: netip.MustParseAddrPort("[::ffff:10.9.9.9]:443")}},
	}
	table := New(cfg)
	for _, tt := range []struct {
		flow event.Flow
		want string
	}{
		{flow(peerB), "rpc-b"},
		{flow("10.77.2.2:50053"), "10.77.2.2:50053"},
		{flow("[fd00::2]:50052"), "[fd00::2]:50052"},
		{flow("10.9.9.9:443"), "far"},
		{flow("10.9.9.8:443"), ""}, // the port of a static leg makes no others
		{flow("10.77.2.2:80"), ""},
		{sock{server: true, local: "10.77.2.1:50052", peer: "10.77.2.9:51515"}.event().Flow, "from 10.77.2.9"},
		{sock{server: true, local: "10.77.2.1:50053", peer: "10.77.2.9:51516"}.event().Flow, "from 10.77.2.9"},
		{sock{server: true, local: "[fd00::1]:50052", peer: "[fd00::9]:51515"}.event().Flow, "from fd00::9"},
		{sock{server: true, local: "10.77.2.1:443", peer: "10.9.9.9:51515"}.event().Flow, ""},
		{event.Flow{}, ""},
	} {
		for range 2 { // made, and remembered
			if got := table.Name(tt.flow); got != tt.want {
				t.Errorf("Name(%v -> %v %v) = %q, want %q", tt.flow.Local, tt.flow.Peer, tt.flow.Role, got, tt.want)
			}
		}
	}
	if table.Overflow() != 0 {
		t.Errorf("Overflow = %d", table.Overflow())
	}
	if diff := cmp.Diff([]uint16{443, 50052, 50053}, cfg.WatchedPorts()); diff != "" {
		t.Error(diff)
	}
}

// TestNameAllocates: the call that is made for every exchange.
func TestNameAllocates(t *testing.T) {
	table := New(Config{Ports: []uint16{50052}})
	f := flow(peerB)
	table.Name(f)
	if n := testing.AllocsPerRun(100, func() { table.Name(f) }); n != 0 {
		t.Errorf("Name allocates %v times", n)
	}
}

func TestStatic(t *testing.T) {
	cfg := Config{Static: []Static{{Name: "rpc-b", Peer: netip.MustParseAddrPort(peerB), Expect: ExpectRDMA}}, Forget: time.Minute}
	table := timeline(t, cfg, []look{
		{at: 0, want: map[string]string{"rpc-b": "unknown"}, why: "listed from the start"},
		{at: 3600, want: map[string]string{"rpc-b": "unknown not_connected"}, why: "never connected is not dead"},
		{at: 3601, nets: []NetnsInfo{ownNet, boxNet}, sockets: []sock{{inode: boxInode, acked: 34, received: 36, quiet: time.Minute}},
			want: map[string]string{"rpc-b": "idle"}, changes: []string{"rpc-b idle"}, why: "in whatever namespace"},
		{at: 3700, nets: []NetnsInfo{ownNet, boxNet}, want: map[string]string{"rpc-b": "idle"}},
		{at: 3703, nets: []NetnsInfo{ownNet, boxNet}, want: map[string]string{"rpc-b": "dead no_socket"}, changes: []string{"rpc-b dead no_socket"}},
		{at: 9000, nets: []NetnsInfo{ownNet, boxNet}, want: map[string]string{"rpc-b": "dead no_socket"}, why: "static legs are not forgotten"},
	})
	l := one(t, table, "rpc-b")
	if l.Expected != ExpectRDMA || l.Netns != "box" || l.GoneNS != seconds(3700) || l.FirstSeenNS != seconds(3601) || l.Connections != 0 {
		t.Errorf("%+v", l)
	}
}

// TestSums: what a leg carried only grows, over sockets that come and go and
// readings that lack numbers.
func TestSums(t *testing.T) {
	table := New(Config{Ports: []uint16{50052}})
	for i, step := range []struct {
		sockets                     []sock
		acked, received, outOfOrder uint64
		connections                 int
	}{
		{[]sock{{cookie: 1, acked: 100, received: 10, outOfOrder: 1}}, 100, 10, 1, 1},
		{[]sock{{cookie: 1, acked: 150, received: 20, outOfOrder: 1}, {cookie: 2, acked: 7, received: 7}}, 157, 27, 1, 2},
		{[]sock{{cookie: 2, acked: 9, received: 7, outOfOrder: 5}}, 159, 27, 6, 1},
		{nil, 159, 27, 6, 0},
		{[]sock{{cookie: 3, acked: 1}}, 160, 27, 6, 1},
		{[]sock{{cookie: 3, state: event.TCPTimeWait, noInfo: true}}, 160, 27, 6, 0},
		{[]sock{{cookie: 4, acked: 50, received: 50}}, 210, 77, 6, 1},
		{[]sock{{cookie: 4, acked: 40, received: 60}}, 210, 87, 6, 1}, // a number that shrank
		{[]sock{{cookie: 4, state: event.TCPFinWait1, acked: 45, received: 60}}, 215, 87, 6, 0},
	} {
		table.Update(seconds(float64(i)), sockets(step.sockets...), []NetnsInfo{ownNet})
		l := one(t, table, peerB)
		if l.BytesAcked != step.acked || l.BytesReceived != step.received || l.OutOfOrder != step.outOfOrder || l.Connections != step.connections {
			t.Errorf("step %d: acked %d received %d out of order %d connections %d, want %+v", i, l.BytesAcked, l.BytesReceived, l.OutOfOrder, l.Connections, step)
		}
	}
}

// TestBusiest: local address, RTT and owner are those of the connection that
// moves.
func TestBusiest(t *testing.T) {
	table := New(Config{Ports: []uint16{50052}})
	a := sock{cookie: 1, local: "10.77.2.1:40001", acked: 9000, rtt: time.Millisecond, pid: 11}
	b := sock{cookie: 2, local: "10.88.2.1:40002", acked: 10, rtt: 2 * time.Millisecond, pid: 22}
	table.Update(seconds(0), sockets(a, b), []NetnsInfo{ownNet})
	if l := one(t, table, peerB); l.PID != 11 || l.RTT != time.Millisecond || l.Device != "veth-b" || l.Process != "engine" {
		t.Errorf("%+v", l)
	}
	b.acked = 5000
	table.Update(seconds(1), sockets(a, b), []NetnsInfo{ownNet})
	if l := one(t, table, peerB); l.PID != 22 || l.RTT != 2*time.Millisecond || l.Local.String() != "10.88.2.1" || l.Device != "" {
		t.Errorf("%+v", l)
	}
	table.Update(seconds(2), nil, []NetnsInfo{ownNet})
	if l := one(t, table, peerB); l.PID != 0 || l.RTT != 0 || l.Process != "engine" || l.GoneNS != seconds(2) || l.Local.String() != "10.88.2.1" {
		t.Errorf("after the last connection: %+v", l)
	}
}

func TestForgetAndOverflow(t *testing.T) {
	table := New(Config{Ports: []uint16{50052}, Max: 2, Forget: time.Minute})
	c, d := "10.0.0.3:50052", "10.0.0.4:50052"
	table.Update(seconds(0), sockets(sock{peer: peerB}), []NetnsInfo{ownNet})
	if got := table.Name(flow(c)); got != c {
		t.Errorf("second leg: %q", got)
	}
	for range 3 {
		if got := table.Name(flow(d)); got != bound.Other {
			t.Errorf("third of two legs: %q", got)
		}
	}
	table.Update(seconds(1), sockets(sock{peer: d}), []NetnsInfo{ownNet})
	if got := table.Overflow(); got != 4 {
		t.Errorf("Overflow = %d, want 4", got)
	}
	// c is in use, though sock_diag never sees it; peerB is not.
	table.Update(seconds(40), nil, []NetnsInfo{ownNet})
	table.Name(flow(c))
	table.Update(seconds(59), nil, []NetnsInfo{ownNet})
	if diff := cmp.Diff([]string{c, peerB}, names(table)); diff != "" {
		t.Error(diff)
	}
	table.Update(seconds(62), nil, []NetnsInfo{ownNet})
	if diff := cmp.Diff([]string{c}, names(table)); diff != "" {
		t.Error(diff)
	}
	if got := table.Name(flow(d)); got != d {
		t.Errorf("there is room again: %q", got)
	}
}

// TestFlowsAreBounded: strangers by the thousand leave nothing behind.
func TestFlowsAreBounded(t *testing.T) {
	table := New(Config{Ports: []uint16{50052}, Max: 8})
	for i := range 5000 {
		table.Name(flow(fmt.Sprintf("10.1.%d.%d:50052", i/250, i%250)))
	}
	if len(table.flows) > 4*8 || len(table.names) != 8 || table.Overflow() != 5000-8 {
		t.Errorf("%d flows, %d legs, %d overflows", len(table.flows), len(table.names), table.Overflow())
	}
}

// TestJoin: what is known beyond TCP decides after TCP, from the same facts.
func TestJoin(t *testing.T) {
	var seen []Facts
	cfg := Config{
		Ports: []uint16{50052},
		Join: func(nowNS int64, facts Facts, leg *event.Leg) {
			seen = append(seen, facts)
			if leg.Transport == event.TransportIdle {
				leg.Transport, leg.RDMADevice, leg.RDMAPort = event.TransportRDMA, "mlx5_0", 2
			}
			leg.Name, leg.BytesAcked = "not its business", 0
		},
	}
	table := timeline(t, cfg, []look{
		{at: 0, sockets: []sock{served(1)}, want: map[string]string{peerB: "unknown"}, changes: []string{peerB + " unknown"}},
		{at: 2, sockets: []sock{served(1), {cookie: 2, state: event.TCPSynSent}}, want: map[string]string{peerB: "rdma"}, changes: []string{peerB + " rdma"}},
	})
	if l := one(t, table, peerB); l.RDMADevice != "mlx5_0" || l.RDMAPort != 2 || l.BytesAcked != 34 {
		t.Errorf("%+v", l)
	}
	if len(seen) != 2 || len(seen[1].Sockets) != 2 {
		t.Fatalf("facts %+v", seen)
	}
	for _, s := range seen[1].Sockets {
		if s.Flow.Socket == 1 && (!s.Settled || s.Age != 2*time.Second || s.Payload != 69) {
			t.Errorf("%+v", s)
		}
		if s.Flow.Socket == 2 && s.Settled {
			t.Errorf("a connection being made is settled: %+v", s)
		}
	}
}
