package ebpf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"grayfail/event"
)

// Events is what one look at the kernel gave. Drain and Open append; Reset
// empties it and keeps the memory.
type Events struct {
	Exchanges   []event.Exchange
	Retransmits []event.Retransmit
	Connections []event.Connection
}

// Reset empties the lists and keeps their memory.
func (e *Events) Reset() {
	e.Exchanges = e.Exchanges[:0]
	e.Retransmits = e.Retransmits[:0]
	e.Connections = e.Connections[:0]
}

// enum event_kind, maps.h.
const (
	kindExchange   = 1
	kindRetransmit = 2
	kindConnection = 3
)

// Sizes of the structs in maps.h; TestLayout compares them with the object.
const (
	flowBytes        = 72
	exchangeBytes    = 80
	exchangeEvent    = 8 + flowBytes + exchangeBytes
	retransmitEvent  = 16 + flowBytes
	connectionEvent  = 24 + flowBytes
	socketStateBytes = flowBytes + exchangeBytes + 48
)

// retransmitKinds is enum retransmit_kind, maps.h; 0 is none.
var retransmitKinds = [...]event.RetransmitKind{
	1: event.RetransmitFast,
	2: event.RetransmitRTO,
	3: event.RetransmitTLP,
	4: event.RetransmitCWR,
	5: event.RetransmitSYN,
	6: event.RetransmitSYNACK,
}

// MalformedError says why bytes from the kernel are no event: the object and
// this package do not belong together.
type MalformedError struct{ Reason string }

func (e *MalformedError) Error() string { return "malformed event: " + e.Reason }

// mapping turns the kernel's monotonic nanoseconds into Unix nanoseconds.
// socket tells whose time it is: an exchange keeps the time of its first look.
type mapping func(socket, mono uint64) int64

// decode appends the event in b to into. It reads the byte order of the
// machine: the kernel wrote b.
func decode(b []byte, wall mapping, into *Events) error {
	r := reader{b: b}
	switch kind := r.u32(); {
	case kind == kindExchange && len(b) == exchangeEvent:
		r.skip(4)
		flow := r.flow()
		into.Exchanges = append(into.Exchanges, r.exchange(flow, wall))
	case kind == kindRetransmit && len(b) == retransmitEvent:
		n := r.u32()
		if n == 0 || n >= uint32(len(retransmitKinds)) {
			return &MalformedError{fmt.Sprintf("retransmit kind %d", n)}
		}
		at := r.u64()
		flow := r.flow()
		side := event.SideCoordinator
		if flow.Role == event.RoleServer {
			side = event.SideWorker
		}
		into.Retransmits = append(into.Retransmits, event.Retransmit{
			TimeNS: wall(0, at), Kind: retransmitKinds[n], Side: side, Flow: flow,
		})
	case kind == kindConnection && len(b) == connectionEvent:
		established := r.u32() != 0
		start, end := r.u64(), r.u64()
		// One mapping for both ends: a stepped clock cannot turn them around.
		endNS := wall(0, end)
		into.Connections = append(into.Connections, event.Connection{
			StartNS: endNS - int64(span(start, end)), EndNS: endNS,
			Established: established, Flow: r.flow(),
		})
	default:
		return &MalformedError{fmt.Sprintf("kind %d of %d bytes", kind, len(b))}
	}
	return nil
}

// socketState is what the table holds of one socket: struct socket_state.
type socketState struct {
	flow     event.Flow
	exchange event.Exchange
	send     uint64 // monotonic; 0: no exchange
	last     uint64 // monotonic; 0: no reply byte yet
	opened   uint64 // monotonic; 0: not known
	clocked  bool   // we opened it: enum role, maps.h
	accepted bool   // the peer opened it, and our port is watched
	torn     bool   // read while the kernel wrote it
}

// activity is when something last happened on the socket.
func (s *socketState) activity() uint64 { return max(s.opened, s.send, s.last) }

func decodeSocket(b []byte, wall mapping) (socketState, error) {
	if len(b) != socketStateBytes {
		return socketState{}, &MalformedError{fmt.Sprintf("socket of %d bytes", len(b))}
	}
	r := reader{b: b}
	var s socketState
	role := binary.NativeEndian.Uint32(b[roleOffset:])
	s.clocked, s.accepted = role == 0, role == 1
	s.flow = r.flow()
	s.send = binary.NativeEndian.Uint64(r.b)
	first := binary.NativeEndian.Uint64(r.b[8:])
	s.last = binary.NativeEndian.Uint64(r.b[16:])
	s.torn = s.last != 0 && (s.last < s.send || first == 0)
	s.exchange = r.exchange(s.flow, wall)
	s.opened = r.u64()
	planned := r.u64()
	// A hook before the send has not counted what that send adds.
	s.exchange.RequestBytes += planned
	return s, nil
}

// roleOffset of struct flow within struct socket_state.
const roleOffset = 8 + 16 + 16 + 2 + 2 + 4 + 4

// reader walks bytes whose length was checked: field after field, as the
// structs in maps.h are declared.
type reader struct{ b []byte }

func (r *reader) take(n int) []byte {
	if len(r.b) < n {
		r.b = nil
		return zeros[:n]
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

var zeros [16]byte

func (r *reader) skip(n int)  { r.take(n) }
func (r *reader) u16() uint16 { return binary.NativeEndian.Uint16(r.take(2)) }
func (r *reader) u32() uint32 { return binary.NativeEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.NativeEndian.Uint64(r.take(8)) }

func (r *reader) addr() netip.Addr {
	return netip.AddrFrom16([16]byte(r.take(16))).Unmap()
}

// flow reads struct flow.
func (r *reader) flow() event.Flow {
	f := event.Flow{Socket: r.u64()}
	local, peer := r.addr(), r.addr()
	f.Local = netip.AddrPortFrom(local, r.u16())
	f.Peer = netip.AddrPortFrom(peer, r.u16())
	f.NetnsInode = r.u32()
	f.PID = int(min(r.u32(), math.MaxInt32))
	if r.u32() == 1 {
		f.Role = event.RoleServer
	}
	comm, _, _ := bytes.Cut(r.take(16), []byte{0})
	f.Comm = strings.ToValidUTF8(string(comm), "\uFFFD")
	return f
}

// exchange reads struct exchange.
func (r *reader) exchange(flow event.Flow, wall mapping) event.Exchange {
	send, first, last, acked := r.u64(), r.u64(), r.u64(), r.u64()
	e := event.Exchange{
		SendNS:       wall(flow.Socket, send),
		Duration:     span(send, last),
		FirstByte:    span(send, first),
		Ack:          span(send, acked),
		Stall:        span(0, r.u64()),
		RequestBytes: r.u64(),
		ReplyBytes:   r.u64(),
		RTT:          micros(r.u32()),
		MinRTT:       micros(r.u32()),
		OutOfOrder:   r.u32(),
		Retransmits:  r.u32(),
		DSACKs:       r.u32(),
		Flow:         flow,
	}
	r.skip(4)
	return e
}

// span is the time between two monotonic readings. The second is 0 where it
// never was, and then so is the span; a thing seen in the same nanosecond did
// happen, so it is at least 1.
func span(from, to uint64) time.Duration {
	if to == 0 {
		return 0
	}
	if to <= from {
		return 1
	}
	return time.Duration(min(to-from, math.MaxInt64))
}

// micros reads a tcp_sock RTT; ~0 is tcp_sock's word for no sample.
func micros(us uint32) time.Duration {
	if us == math.MaxUint32 {
		return 0
	}
	return time.Duration(us) * time.Microsecond
}
