package legs

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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

// TestOtherNamespace: two namespaces that reach one peer have two legs. Our
// own has the plain name, whatever came first in the reading.
func TestOtherNamespace(t *testing.T) {
	nets := []NetnsInfo{boxNet, ownNet}
	table := timeline(t, Config{}, []look{
		{at: 0, nets: nets, sockets: []sock{{inode: boxInode, acked: 1}, {acked: 1}, {inode: boxInode, peer: "10.8.8.8:50052"}},
			want:    map[string]string{peerB: "unknown", peerB + "@box": "unknown", "10.8.8.8:50052": "unknown"},
			changes: []string{peerB + " unknown"}, why: "only ours has a known device"},
	})
	if l := one(t, table, peerB); l.Netns != "" || l.Device != "veth-b" {
		t.Errorf("%+v", l)
	}
	if l := one(t, table, peerB+"@box"); l.Netns != "box" {
		t.Errorf("%+v", l)
	}
	if got := table.Name(sock{inode: boxInode}.event().Flow); got != peerB+"@box" {
		t.Errorf("Name in the box = %q", got)
	}
	if got := table.Name(flow(peerB)); got != peerB {
		t.Errorf("Name in ours = %q", got)
	}
	// The other way round in time: a name once given stays.
	table = New(Config{Ports: []uint16{50052}})
	table.Update(seconds(0), sockets(sock{inode: boxInode}), nets)
	table.Update(seconds(1), sockets(sock{inode: boxInode}, sock{}), nets)
	if diff := cmp.Diff([]string{peerB, peerB + "@host"}, names(table)); diff != "" {
		t.Error(diff)
	}
}

// TestContainerReplaced: a leg outlives its container, whether the new one has
// the same name or another.
func TestContainerReplaced(t *testing.T) {
	const newInode = 3000
	for _, name := range []string{"box", "box:77"} {
		table := New(Config{Ports: []uint16{50052}})
		table.Update(seconds(0), sockets(sock{inode: boxInode, acked: 1000, quiet: time.Hour}), []NetnsInfo{ownNet, boxNet})
		table.Update(seconds(1), nil, []NetnsInfo{ownNet})
		table.Update(seconds(5), nil, []NetnsInfo{ownNet})
		if l := one(t, table, peerB); l.Transport != event.TransportDead {
			t.Errorf("%s: after the container ended: %+v", name, l)
		}
		table.Update(seconds(9), sockets(sock{cookie: 9, inode: newInode, acked: 500, quiet: time.Hour}), []NetnsInfo{ownNet, {Inode: newInode, Name: name}})
		l := one(t, table, peerB)
		if l.Netns != name || l.BytesAcked != 1500 || l.Transport != event.TransportIdle || len(table.Legs()) != 1 {
			t.Errorf("%s: %+v of %v", name, l, names(table))
		}
	}
}

// TestMovedIntoContainer: the engine is moved from the host into a container.
// After a while its leg moves along, static or not.
func TestMovedIntoContainer(t *testing.T) {
	for _, static := range [][]Static{nil, {{Name: "rpc-b", Peer: netip.MustParseAddrPort(peerB)}}} {
		table := New(Config{Ports: []uint16{50052}, Static: static})
		nets := []NetnsInfo{ownNet, boxNet}
		table.Update(seconds(0), sockets(sock{acked: 1000, quiet: time.Hour}), nets)
		table.Update(seconds(1), nil, nets)
		table.Update(seconds(120), sockets(sock{cookie: 9, inode: boxInode, acked: 500}), nets)
		legs := table.Legs()
		if len(legs) != 1 || legs[0].Netns != "box" || legs[0].BytesAcked != 1500 {
			t.Errorf("%+v", legs)
		}
	}
}

// TestNamedBeforeNamespace: ebpf may report a flow before the first reading has
// told the namespaces. The leg is the same.
func TestNamedBeforeNamespace(t *testing.T) {
	table := New(Config{Ports: []uint16{50052}})
	if got := table.Name(flow(peerB)); got != peerB {
		t.Errorf("Name = %q", got)
	}
	table.Update(seconds(0), sockets(sock{acked: 10}), []NetnsInfo{ownNet})
	if legs := table.Legs(); len(legs) != 1 || legs[0].Netns != "" || legs[0].BytesAcked != 10 {
		t.Errorf("%+v", legs)
	}
	if got := table.Name(flow(peerB)); got != peerB {
		t.Errorf("Name = %q", got)
	}
}

func TestStatic(t *testing.T) {
	cfg := Config{Static: []Static{{Name: "rpc-b", Peer: netip.MustParseAddrPort(peerB), Expect: ExpectRDMA}}, Forget: time.Minute}
	table := timeline(t, cfg, []look{
		{at: 0, want: map[string]string{"rpc-b": "unknown"}, why: "listed from the start"},
		{at: 3600, want: map[string]string{"rpc-b": "unknown"}, why: "never connected is not dead"},
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

func TestSetConfig(t *testing.T) {
	peerC := "10.77.3.2:50052"
	static := func(name, peer string) Static { return Static{Name: name, Peer: netip.MustParseAddrPort(peer)} }
	table := New(Config{Ports: []uint16{50052}, Static: []Static{static("b", peerB)}})
	read := func(at float64) {
		table.Update(seconds(at), sockets(sock{cookie: 1, peer: peerB, acked: 77, quiet: time.Hour}, sock{cookie: 2, peer: peerC, acked: 88, quiet: time.Hour}), []NetnsInfo{ownNet})
	}
	read(0)
	table.Changes()
	for i, step := range []struct {
		cfg     Config
		want    []string
		changes []string
	}{
		{Config{Ports: []uint16{50052}, Static: []Static{static("b", peerB)}}, []string{peerC, "b"}, nil},
		{Config{Ports: []uint16{50052}, Static: []Static{static("bee", peerB), static("c", peerC)}}, []string{"bee", "c"}, []string{"bee", "c"}},
		{Config{Ports: []uint16{50052}, Static: []Static{static("c", peerB), static("bee", peerC)}}, []string{"bee", "c"}, []string{"bee", "c"}},
		{Config{Ports: []uint16{50052}, Static: []Static{static("d", "10.0.0.9:1")}}, []string{peerB, peerC, "d"}, []string{peerB, peerC}},
		{Config{Static: []Static{static("b", peerB)}}, []string{"b"}, []string{"b"}},
		{Config{Ports: []uint16{1}}, nil, nil},
		{Config{Ports: []uint16{50052}}, []string{peerB, peerC}, []string{peerB, peerC}},
	} {
		table.SetConfig(step.cfg)
		read(float64(i + 1))
		if diff := cmp.Diff(step.want, names(table)); diff != "" {
			t.Errorf("step %d:\n%s", i, diff)
		}
		var changed []string
		for _, c := range table.Changes() {
			changed = append(changed, c.Leg)
		}
		if diff := cmp.Diff(step.changes, changed); diff != "" {
			t.Errorf("step %d, changes:\n%s", i, diff)
		}
		for _, l := range table.Legs() {
			if want := map[string]uint64{peerB: 77, peerC: 88}[l.Peer.String()]; l.BytesAcked != want {
				t.Errorf("step %d: %s has %d bytes, want %d", i, l.Name, l.BytesAcked, want)
			}
			if got := table.Name(flow(l.Peer.String())); got != l.Name {
				t.Errorf("step %d: Name = %q, want %q", i, got, l.Name)
			}
		}
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

func TestHostAddresses(t *testing.T) {
	table := New(Config{})
	devices := func(list ...string) map[netip.Addr]string {
		m := make(map[netip.Addr]string)
		for _, a := range list {
			m[netip.MustParseAddr(a)] = "x"
		}
		return m
	}
	table.Update(1, nil, []NetnsInfo{
		{Inode: 1, Devices: devices("127.0.0.1", "::1", "fe80::1", "169.254.1.1", "10.0.0.2", "fd00::2")},
		{Inode: 2, Name: "box", Devices: devices("10.0.0.2", "10.0.0.1")},
		{Inode: 3, Name: "dark"},
	})
	var got []string
	for _, a := range table.HostAddresses() {
		got = append(got, a.String())
	}
	if diff := cmp.Diff([]string{"10.0.0.1", "10.0.0.2", "fd00::2"}, got); diff != "" {
		t.Error(diff)
	}
}

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

func BenchmarkUpdate256(b *testing.B) {
	table := New(Config{Ports: []uint16{50052}})
	var list []sock
	for i := range 1000 {
		list = append(list, sock{cookie: uint64(i + 1), peer: fmt.Sprintf("10.0.%d.%d:50052", i%256/16, i%16), acked: uint64(i)})
	}
	reading := sockets(list...)
	b.ReportAllocs()
	now := seconds(0)
	for b.Loop() {
		now += 1e9
		table.Update(now, reading, []NetnsInfo{ownNet})
	}
}
