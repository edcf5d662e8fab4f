package join

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grayfail/collector/legs"
	"grayfail/event"
)

// Local addresses of a card with two ports, of a second card, and of a netdev
// without RDMA; engine is the process that holds the legs.
const (
	port1   = "10.9.1.1"
	port1v6 = "fd00:9::1"
	port2   = "10.9.2.1"
	second  = "10.9.3.1"
	bridge  = "10.8.0.1"

	engine = 4711
	inode  = 1000
)

var hostNet = legs.NetnsInfo{Inode: inode, Devices: map[netip.Addr]string{
	addr(port1): "ens1f0", addr(port1v6): "ens1f0", addr(port2): "ens1f1", addr(second): "ens2", addr(bridge): "br0",
}}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// gid is an address as the GID table of a RoCE v2 port holds it.
func gid(a, netdev string) event.GID {
	return event.GID{Addr: addr(a), Type: "RoCE v2", Netdev: netdev}
}

func port(device string, number int, netdev string, gids ...event.GID) event.RDMAPort {
	return event.RDMAPort{
		Device: device, Port: number, Netdev: netdev, LinkLayer: "Ethernet", Protocol: "roce",
		State: "ACTIVE", Active: true, GIDs: gids, GIDsRead: true,
	}
}

// cards are the ports of this host.
func cards() []event.RDMAPort {
	return []event.RDMAPort{
		port("mlx4_0", 1, "ens1f0", gid(port1, "ens1f0"), gid(port1v6, "ens1f0")),
		port("mlx4_0", 2, "ens1f1", gid(port2, "ens1f1")),
		port("rxe0", 1, "ens2", gid(second, "ens2")),
	}
}

// qp is a queue pair "device/port state", of the engine where pid is 0.
func qp(words string, pid int) event.QueuePair {
	var where, state string
	if _, err := fmt.Sscanf(words, "%s %s", &where, &state); err != nil {
		panic(err)
	}
	device, number, _ := strings.Cut(where, "/")
	q := event.QueuePair{Device: device, Type: "RC", State: state, PID: pid}
	if _, err := fmt.Sscanf(number, "%d", &q.Port); err != nil {
		panic(err)
	}
	return q
}

// sock is an established connection to a worker; idle unless it moves.
type sock struct {
	peer    string // the last number of the worker's address; the leg is "w" + peer
	local   string // port1 if empty
	cookie  uint64
	payload uint64 // received; 36 with the hello
	moves   bool
	unacked uint32
	starved bool // its hello was never answered
	nobody  bool // its process is not known
	pid     int  // engine if 0
	quiet   time.Duration
	state   event.TCPState
}

func (s sock) event() event.TCPSocket {
	out := event.TCPSocket{
		State: event.TCPEstablished, Inode: 77, HasInfo: true, BytesAcked: 34, BytesReceived: 36 + s.payload,
		SinceSend: time.Hour, SinceReceive: time.Hour, UnackedSegments: s.unacked,
		Flow: event.Flow{NetnsInode: inode, Socket: s.cookie, PID: engine, Comm: "llama-server"},
	}
	if s.state != 0 {
		out.State = s.state
	}
	if s.local == "" {
		s.local = port1
	}
	out.Flow.Local = netip.AddrPortFrom(addr(s.local).Unmap(), 40000)
	out.Flow.Peer = peer(s.peer)
	if out.Flow.Socket == 0 {
		out.Flow.Socket = uint64(s.peer[0])
	}
	if s.quiet != 0 {
		out.SinceSend, out.SinceReceive = s.quiet, s.quiet
	}
	if s.moves {
		out.SinceSend, out.SinceReceive = 5*time.Millisecond, 5*time.Millisecond
	}
	if s.starved {
		out.BytesReceived = 0
	}
	if s.pid != 0 {
		out.Flow.PID = s.pid
	}
	if s.nobody {
		out.Flow.PID, out.Flow.Comm = 0, ""
	}
	return out
}

func peer(number string) netip.AddrPort {
	return netip.MustParseAddrPort("10.9.9." + number + ":50052")
}

// step is one second of a timeline: what is listed and read, and how the legs
// stand after it: "w1" -> "transport reason device/port".
type step struct {
	at      float64
	ports   []event.RDMAPort // cards if nil
	pairs   []event.QueuePair
	off     bool // queue pairs are not listed
	stale   bool // no new list
	missing []string
	sockets []sock
	want    map[string]string
	why     string
}

type world struct {
	judge *Judge
	table *legs.Table
	last  event.RDMA
}

func newWorld(opts Options, expect map[string]string) *world {
	w := &world{judge: New(opts)}
	cfg := legs.Config{Ports: []uint16{50052}, Join: w.judge.Join}
	for _, number := range []string{"1", "2", "3", "4", "5"} {
		cfg.Static = append(cfg.Static, legs.Static{Name: "w" + number, Peer: peer(number), Expect: expect["w"+number]})
	}
	w.table = legs.New(cfg)
	return w
}

func seconds(s float64) int64 { return int64((1_000_000 + s) * 1e9) }

func (w *world) look(s *step) map[string]string {
	now := seconds(s.at)
	ports := s.ports
	if ports == nil {
		ports = cards()
	}
	r := event.RDMA{TimeNS: now, Ports: ports, QueuePairs: s.pairs, QueuePairsNS: now, Unlisted: s.missing}
	switch {
	case s.off:
		r.QueuePairs, r.QueuePairsNS = nil, 0
	case s.stale:
		r.QueuePairs, r.QueuePairsNS, r.Unlisted = w.last.QueuePairs, w.last.QueuePairsNS, w.last.Unlisted
	}
	for i := range r.QueuePairs {
		if q := &r.QueuePairs[i]; q.LQPN == 0 {
			q.LQPN = uint32(100 + i)
		}
	}
	w.last = r
	w.judge.Reading(r)
	sockets := make([]event.TCPSocket, 0, len(s.sockets))
	for _, sk := range s.sockets {
		sockets = append(sockets, sk.event())
	}
	w.table.Update(now, sockets, []legs.NetnsInfo{hostNet})
	got := make(map[string]string)
	for _, l := range w.table.Legs() {
		if l.FirstSeenNS == 0 {
			continue // nothing was ever connected
		}
		words := []string{string(l.Transport)}
		if l.Reason != "" {
			words = append(words, l.Reason)
		}
		if l.RDMADevice != "" {
			words = append(words, fmt.Sprintf("%s/%d", l.RDMADevice, l.RDMAPort))
		}
		got[l.Name] = strings.Join(words, " ")
	}
	return got
}

// timeline plays steps; the first one twice, since at its first look a Judge
// does not know yet who else may claim a queue pair.
func timeline(t *testing.T, w *world, steps []step) {
	t.Helper()
	w.look(&steps[0])
	for i := range steps {
		s := &steps[i]
		if diff := cmp.Diff(s.want, w.look(s)); diff != "" {
			t.Errorf("at %g s (%s):\n%s", s.at, s.why, diff)
		}
	}
}

func is(list ...string) map[string]string {
	out := make(map[string]string)
	for i := 0; i < len(list); i += 2 {
		out[list[i]] = list[i+1]
	}
	return out
}

func pairsOf(words ...string) (out []event.QueuePair) {
	for _, w := range words {
		out = append(out, qp(w, engine))
	}
	return out
}
