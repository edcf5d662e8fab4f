package legs

import (
	"net/netip"
	"sync/atomic"
	"time"

	"grayfail/event"
)

// id is what makes a leg: the namespace by name, so that a leg outlives the
// restart of its container, and the peer. Server-role legs have peer port 0.
type id struct {
	netns string
	role  event.Role
	peer  netip.AddrPort
}

// leg is one row of the table, guarded by the table's lock.
type leg struct {
	id
	name    string
	base    string  // name without what makes it unique
	static  *Static // nil when discovered
	unbound bool    // static and not seen in any namespace yet

	// usedNS is the last time a socket or a flow belonged to it; used is set
	// by Name between two updates.
	usedNS int64
	used   atomic.Bool

	sockets map[socketKey]*socket
	out     event.Leg
	// plain is the transport before stalled is looked for.
	plain       event.Transport
	plainReason string
	motion      motion
	// told is the last change that was handed out or waits to be, changed
	// says which of the two.
	told    event.LegChange
	changed bool

	// hadSettled: a connection was judged once, so its absence means
	// something. lostNS is since when no connection is established.
	hadSettled bool
	lostNS     int64
	// unreadNS is since when the namespace could not be read, 0 if it can.
	unreadNS int64
	// refusedNS is the last failed connection that ebpf reported.
	refusedNS int64
}

// socketKey tells sockets apart; addresses as well, since a kernel without
// cookies gives 0.
type socketKey struct {
	inode       uint32
	cookie      uint64
	local, peer netip.AddrPort
}

// socket is one connection of a leg.
type socket struct {
	last event.TCPSocket
	// sinceNS is when it was established at the latest.
	sinceNS int64
	// closingNS is since when it waits for its end to be acknowledged.
	closingNS int64
	// ackNS is when the peer last acknowledged anything while something was
	// outstanding, ackRetransmits the retransmits by then.
	ackNS          int64
	ackRetransmits uint64
	// unreadNS is since when the process here reads nothing of what waits.
	unreadNS   int64
	moved      uint64 // payload since the reading before
	generation uint64
}

// established says whether the connection can carry payload from our side.
func established(s event.TCPState) bool {
	return s == event.TCPEstablished
}

// closing says whether our side ended the connection and the peer has yet to
// acknowledge that.
func closing(s event.TCPState) bool {
	return s == event.TCPFinWait1 || s == event.TCPClosing || s == event.TCPLastAck
}

// counts says whether a socket in this state keeps or makes a leg. TIME-WAIT,
// FIN-WAIT-2 and CLOSE are leftovers, SYN-RECV is nobody's connection yet.
func counts(s event.TCPState) bool {
	switch s {
	case event.TCPEstablished, event.TCPSynSent, event.TCPCloseWait,
		event.TCPFinWait1, event.TCPClosing, event.TCPLastAck:
		return true
	}
	return false
}

// payload counts what a socket carried both ways. bytes_acked of the side that
// opened the connection counts its SYN as one.
func payload(s *event.TCPSocket) uint64 {
	acked := s.BytesAcked
	if s.Flow.Role == event.RoleClient && acked > 0 {
		acked--
	}
	return acked + s.BytesReceived
}

// update takes a new reading and returns what moved since the last.
func (s *socket) update(nowNS int64, now event.TCPSocket) (acked, received, outOfOrder uint64) {
	was := s.last
	if established(now.State) && s.sinceNS == 0 {
		// The kernel's idle times bound the age of a socket that was there
		// before us (both start at the handshake, net/ipv4/tcp_input.c).
		s.sinceNS = nowNS - int64(max(now.SinceSend, now.SinceReceive))
	}
	switch {
	case !closing(now.State):
		s.closingNS = 0
	case s.closingNS == 0:
		s.closingNS = nowNS
	}
	if !now.HasInfo {
		// TIME-WAIT and the like: the numbers of before stay.
		s.last.State, s.last.TimeNS = now.State, now.TimeNS
		s.moved = 0
		return 0, 0, 0
	}
	if s.ackNS == 0 || now.UnackedSegments == 0 || now.BytesAcked != was.BytesAcked {
		s.ackNS, s.ackRetransmits = nowNS, now.Retransmits
	}
	if now.Flow.PID == 0 && now.Inode != 0 && now.Inode == was.Inode {
		now.Flow.PID, now.Flow.Comm = was.Flow.PID, was.Flow.Comm
	}
	acked = grown(was.BytesAcked, now.BytesAcked)
	received = grown(was.BytesReceived, now.BytesReceived)
	outOfOrder = grown(was.OutOfOrder, now.OutOfOrder)
	s.last, s.moved = now, acked+received
	s.waits(nowNS, &was)
	return acked, received, outOfOrder
}

func grown(was, now uint64) uint64 {
	if now < was {
		return 0
	}
	return now - was
}

// facts describes the socket for a judgement.
func (s *socket) facts(nowNS int64, settling time.Duration) SocketFacts {
	f := SocketFacts{TCPSocket: s.last, Payload: payload(&s.last)}
	if s.sinceNS != 0 {
		f.Age = time.Duration(max(0, nowNS-s.sinceNS))
	}
	f.Settled = established(s.last.State) && f.Age >= settling
	return f
}
