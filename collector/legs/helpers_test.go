package legs

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
)

const (
	ownInode = 1000
	boxInode = 2000
	peerB    = "10.77.2.2:50052"
)

var (
	ownNet = NetnsInfo{Inode: ownInode, Devices: map[netip.Addr]string{
		netip.MustParseAddr("10.77.2.1"): "veth-b", netip.MustParseAddr("127.0.0.1"): "lo",
	}}
	boxNet = NetnsInfo{Inode: boxInode, Name: "box"}
)

// sock describes a socket as sock_diag would: by default an established client
// to peerB in our own namespace that sent and received its last byte just now.
type sock struct {
	cookie          uint64
	peer            string
	local           string
	inode           uint32 // of the namespace
	server          bool
	state           event.TCPState
	acked, received uint64
	outOfOrder      uint64
	retransmits     uint64
	unacked         uint32
	queue           uint32
	quiet           time.Duration // since the last byte either way
	unheard         time.Duration // and since the last byte received, beyond that
	orphan          bool          // no inode: nobody has accepted or still holds it
	rtt             time.Duration
	pid             int
	noInfo          bool
}

func (s sock) event() event.TCPSocket {
	out := event.TCPSocket{
		State: s.state, HasInfo: !s.noInfo, Inode: uint32(10_000 + s.cookie),
		BytesAcked: s.acked, BytesReceived: s.received, OutOfOrder: s.outOfOrder, Retransmits: s.retransmits,
		UnackedSegments: s.unacked, ReceiveQueueBytes: s.queue,
		SinceSend: s.quiet, SinceReceive: s.quiet + s.unheard, RTT: s.rtt,
		Flow: event.Flow{
			NetnsInode: s.inode, Socket: s.cookie, PID: s.pid,
			Local: netip.MustParseAddrPort(or(s.local, "10.77.2.1:40000")), Peer: netip.MustParseAddrPort(or(s.peer, peerB)),
		},
	}
	if s.pid != 0 {
		out.Flow.Comm = "engine"
	}
	if out.State == 0 {
		out.State = event.TCPEstablished
	}
	if out.Flow.NetnsInode == 0 {
		out.Flow.NetnsInode = ownInode
	}
	if s.server {
		out.Flow.Role = event.RoleServer
	}
	if s.orphan {
		out.Inode = 0
	}
	return out
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func sockets(list ...sock) (out []event.TCPSocket) {
	for i, s := range list {
		if s.cookie == 0 {
			s.cookie = uint64(i + 1)
		}
		out = append(out, s.event())
	}
	return out
}

// look is one step of a timeline: what is read at a time, and how the legs
// stand after it.
type look struct {
	at      float64 // seconds
	do      func(*Table)
	sockets []sock
	nets    []NetnsInfo       // our own when nil
	want    map[string]string // leg -> "transport" or "transport reason"
	changes []string          // "leg transport reason", in order; nil is none
	why     string
}

func seconds(s float64) int64 { return int64((1_000_000 + s) * 1e9) }

// timeline plays looks and compares every leg and every change.
func timeline(t *testing.T, cfg Config, looks []look) *Table {
	t.Helper()
	if cfg.Ports == nil {
		cfg.Ports = []uint16{50052}
	}
	table := New(cfg)
	for _, l := range looks {
		if l.do != nil {
			l.do(table)
		}
		nets := l.nets
		if nets == nil {
			nets = []NetnsInfo{ownNet}
		}
		table.Update(seconds(l.at), sockets(l.sockets...), nets)
		got := make(map[string]string)
		for _, leg := range table.Legs() {
			got[leg.Name] = words(string(leg.Transport), leg.Reason)
		}
		if l.want == nil {
			l.want = map[string]string{}
		}
		if diff := cmp.Diff(l.want, got); diff != "" {
			t.Errorf("at %g s (%s), legs:\n%s", l.at, l.why, diff)
		}
		var changes []string
		for _, c := range table.Changes() {
			if c.TimeNS != seconds(l.at) {
				t.Errorf("at %g s: change at %d", l.at, c.TimeNS)
			}
			changes = append(changes, words(c.Leg, string(c.Transport), c.Reason))
		}
		if diff := cmp.Diff(l.changes, changes); diff != "" {
			t.Errorf("at %g s (%s), changes:\n%s", l.at, l.why, diff)
		}
	}
	return table
}

func words(list ...string) (out string) {
	for _, w := range slices.DeleteFunc(list, func(w string) bool { return w == "" }) {
		if out != "" {
			out += " "
		}
		out += w
	}
	return out
}

// one returns the leg of that name.
func one(t *testing.T, table *Table, name string) event.Leg {
	t.Helper()
	for _, l := range table.Legs() {
		if l.Name == name {
			return l
		}
	}
	t.Fatalf("no leg %q in %+v", name, table.Legs())
	return event.Leg{}
}
