package ebpf

import (
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"grayfail/event"
)

// plus1000s is a mapping that is easy to see.
func plus1000s(_, mono uint64) int64 { return int64(mono) + 1000*second }

// wire writes a generated struct as the kernel does.
func wire(t testing.TB, v any) []byte {
	t.Helper()
	b, err := binary.Append(nil, binary.NativeEndian, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestLayout: the decoder walks the structs by hand; their sizes are the
// object's, and TestDecode goes through every field of the generated types.
func TestLayout(t *testing.T) {
	for name, sizes := range map[string][2]int{
		"exchange_event":   {binary.Size(probesExchangeEvent{}), exchangeEvent},
		"retransmit_event": {binary.Size(probesRetransmitEvent{}), retransmitEvent},
		"connection_event": {binary.Size(probesConnectionEvent{}), connectionEvent},
		"socket_state":     {binary.Size(probesSocketState{}), socketStateBytes},
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("%s has %d bytes, the decoder expects %d", name, sizes[0], sizes[1])
		}
	}
}

func exampleExchange() probesExchangeEvent {
	e := probesExchangeEvent{Kind: kindExchange}
	e.Flow.Socket = 77
	e.Flow.Local = netip.MustParseAddr("::ffff:10.77.1.1").As16()
	e.Flow.Peer = netip.MustParseAddr("::ffff:10.77.1.2").As16()
	e.Flow.LocalPort, e.Flow.PeerPort = 40001, 50052
	e.Flow.Netns, e.Flow.Pid = 4026531840, 4242
	copy(e.Flow.Comm[:], "llama-server\x00junk")
	e.Exchange.Send = uint64(5 * second)
	e.Exchange.First = uint64(5*second + 1e6)
	e.Exchange.Last = uint64(5*second + 9e6)
	e.Exchange.Acked = uint64(5*second + 5e5)
	e.Exchange.Stall = 4e6
	e.Exchange.Request, e.Exchange.Reply = 321, 131072
	e.Exchange.SrttUs, e.Exchange.MinRttUs = 250, 80
	e.Exchange.OutOfOrder, e.Exchange.Retransmits, e.Exchange.Dsacks = 3, 2, 1
	return e
}

func exampleFlow() event.Flow {
	return event.Flow{
		NetnsInode: 4026531840, Role: event.RoleClient, Socket: 77, PID: 4242, Comm: "llama-server",
		Local: netip.MustParseAddrPort("10.77.1.1:40001"), Peer: netip.MustParseAddrPort("10.77.1.2:50052"),
	}
}

func exampleDecoded() event.Exchange {
	return event.Exchange{
		SendNS: 1005 * second, Duration: 9 * time.Millisecond, FirstByte: time.Millisecond,
		Ack: 500 * time.Microsecond, Stall: 4 * time.Millisecond, RequestBytes: 321, ReplyBytes: 131072,
		RTT: 250 * time.Microsecond, MinRTT: 80 * time.Microsecond,
		OutOfOrder: 3, Retransmits: 2, DSACKs: 1, Flow: exampleFlow(),
	}
}

func diff(want, got any) string {
	return cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{}), cmpopts.EquateEmpty())
}

func TestDecode(t *testing.T) {
	retransmit := probesRetransmitEvent{Kind: kindRetransmit, Retransmit: 2, Time: uint64(6 * second)}
	retransmit.Flow = exampleExchange().Flow
	worker := retransmit
	worker.Retransmit = 6
	worker.Flow.Role = 1
	workerFlow := exampleFlow()
	workerFlow.Role = event.RoleServer

	connection := probesConnectionEvent{Kind: kindConnection, Established: 1, Start: uint64(2 * second), End: uint64(7 * second)}
	connection.Flow = exampleExchange().Flow
	connection.Flow.Peer = netip.MustParseAddr("fd00::2").As16()
	v6 := exampleFlow()
	v6.Peer = netip.MustParseAddrPort("[fd00::2]:50052")

	for _, test := range []struct {
		name string
		in   any
		want Events
	}{
		{"exchange", exampleExchange(), Events{Exchanges: []event.Exchange{exampleDecoded()}}},
		{"retransmit", retransmit, Events{Retransmits: []event.Retransmit{{
			TimeNS: 1006 * second, Kind: event.RetransmitRTO, Side: event.SideCoordinator, Flow: exampleFlow(),
		}}}},
		{"retransmit of a worker", worker, Events{Retransmits: []event.Retransmit{{
			TimeNS: 1006 * second, Kind: event.RetransmitSYNACK, Side: event.SideWorker, Flow: workerFlow,
		}}}},
		{"connection", connection, Events{Connections: []event.Connection{{
			StartNS: 1002 * second, EndNS: 1007 * second, Established: true, Flow: v6,
		}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got Events
			if err := decode(wire(t, test.in), plus1000s, &got); err != nil {
				t.Fatal(err)
			}
			if d := diff(test.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestDecodeEdges: what never was stays 0; what the machine's clocks cannot
// order is not negative.
func TestDecodeEdges(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*probesExchangeEvent)
		want   func(*event.Exchange)
	}{
		{"no reply, no ACK", func(e *probesExchangeEvent) { e.Exchange.First, e.Exchange.Last, e.Exchange.Acked = 0, 0, 0 },
			func(e *event.Exchange) { e.Duration, e.FirstByte, e.Ack = 0, 0, 0 }},
		{"ACKed in the same nanosecond", func(e *probesExchangeEvent) { e.Exchange.Acked = e.Exchange.Send },
			func(e *event.Exchange) { e.Ack = 1 }},
		{"last before send", func(e *probesExchangeEvent) { e.Exchange.Last = e.Exchange.Send - 1 },
			func(e *event.Exchange) { e.Duration = 1 }},
		{"no RTT sample", func(e *probesExchangeEvent) { e.Exchange.MinRttUs = math.MaxUint32 },
			func(e *event.Exchange) { e.MinRTT = 0 }},
		{"past any clock", func(e *probesExchangeEvent) { e.Exchange.Last = math.MaxUint64; e.Exchange.Stall = math.MaxUint64 },
			func(e *event.Exchange) { e.Duration = math.MaxInt64; e.Stall = math.MaxInt64 }},
		{"command of 16 bytes", func(e *probesExchangeEvent) { copy(e.Flow.Comm[:], "sixteen bytes xx") },
			func(e *event.Exchange) { e.Flow.Comm = "sixteen bytes xx" }},
		{"command that is no text", func(e *probesExchangeEvent) { copy(e.Flow.Comm[:], "a\xff\x00") },
			func(e *event.Exchange) { e.Flow.Comm = "a\uFFFD" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			in, want := exampleExchange(), exampleDecoded()
			test.change(&in)
			test.want(&want)
			var got Events
			if err := decode(wire(t, in), plus1000s, &got); err != nil {
				t.Fatal(err)
			}
			if d := diff([]event.Exchange{want}, got.Exchanges); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDecodeMalformed(t *testing.T) {
	good := wire(t, exampleExchange())
	bad := map[string][]byte{
		"empty":                 nil,
		"short kind":            good[:3],
		"cut":                   good[:len(good)-1],
		"long":                  append(good[:len(good):len(good)], 0),
		"unknown kind":          wire(t, probesExchangeEvent{Kind: 9}),
		"unknown retransmit":    wire(t, probesRetransmitEvent{Kind: kindRetransmit, Retransmit: 7}),
		"no retransmit":         wire(t, probesRetransmitEvent{Kind: kindRetransmit}),
		"connection too short":  wire(t, probesConnectionEvent{Kind: kindConnection})[:40],
		"exchange's kind alone": good[:4],
	}
	for name, b := range bad {
		t.Run(name, func(t *testing.T) {
			var got Events
			err := decode(b, plus1000s, &got)
			var malformed *MalformedError
			if !errors.As(err, &malformed) {
				t.Errorf("error %v, want a MalformedError", err)
			}
			if d := diff(Events{}, got); d != "" {
				t.Error("something was appended:", d)
			}
		})
	}
	if _, err := decodeSocket(good, plus1000s); err == nil {
		t.Error("an exchange was taken for a socket")
	}
}

func exampleState() probesSocketState {
	e := exampleExchange()
	s := probesSocketState{Opened: uint64(2 * second), Planned: 9, Established: 1, WriteSeq: 1, ReplyEnd: 2}
	s.Flow = e.Flow
	s.Exchange = e.Exchange
	return s
}

func TestDecodeSocket(t *testing.T) {
	in := exampleState()
	got, err := decodeSocket(wire(t, in), plus1000s)
	if err != nil {
		t.Fatal(err)
	}
	want := exampleDecoded()
	want.RequestBytes += 9 // planned
	if d := diff(want, got.exchange); d != "" {
		t.Error(d)
	}
	if got.send != in.Exchange.Send || got.last != in.Exchange.Last || got.opened != in.Opened || !got.clocked || got.torn {
		t.Errorf("bookkeeping: %+v", got)
	}
	in.Exchange.Last = in.Exchange.Send - 1
	if got, _ = decodeSocket(wire(t, in), plus1000s); !got.torn {
		t.Error("a reply before its request was taken as read whole")
	}
	for role := uint32(1); role < 3; role++ {
		in.Flow.Role = role
		if got, _ = decodeSocket(wire(t, in), plus1000s); got.clocked || got.accepted != (role == 1) {
			t.Errorf("role %d: clocked %t, accepted %t", role, got.clocked, got.accepted)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(wire(f, exampleExchange()))
	f.Add(wire(f, probesRetransmitEvent{Kind: kindRetransmit, Retransmit: 3}))
	f.Add(wire(f, probesConnectionEvent{Kind: kindConnection, Start: 9, End: 3}))
	f.Add(wire(f, exampleState()))
	f.Add([]byte{1, 0, 0, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var got Events
		err := decode(b, plus1000s, &got)
		n := len(got.Exchanges) + len(got.Retransmits) + len(got.Connections)
		if (err == nil) != (n == 1) {
			t.Fatalf("%d events, error %v", n, err)
		}
		for _, e := range got.Exchanges {
			if e.Duration < 0 || e.FirstByte < 0 || e.Ack < 0 || e.Stall < 0 || e.RTT < 0 || e.MinRTT < 0 || e.Flow.PID < 0 {
				t.Fatalf("negative: %+v", e)
			}
		}
		for _, c := range got.Connections {
			if c.EndNS < c.StartNS && c.EndNS > 0 && c.StartNS > 0 {
				t.Fatalf("ends before it starts: %+v", c)
			}
		}
		if s, err := decodeSocket(b, plus1000s); err == nil && s.exchange.Duration < 0 {
			t.Fatalf("negative: %+v", s)
		}
	})
}

func BenchmarkDecodeExchange(b *testing.B) {
	in := wire(b, exampleExchange())
	var into Events
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		into.Reset()
		if err := decode(in, plus1000s, &into); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeRetransmit(b *testing.B) {
	in := wire(b, probesRetransmitEvent{Kind: kindRetransmit, Retransmit: 3})
	var into Events
	b.ReportAllocs()
	for b.Loop() {
		into.Reset()
		if err := decode(in, plus1000s, &into); err != nil {
			b.Fatal(err)
		}
	}
}
