package legs

import (
	"time"

	"grayfail/event"
)

// Reasons of stalled.
const (
	ReasonReplyOutstanding = "reply_outstanding" // the last thing on the leg was our send, and no answer came
	ReasonUnread           = "unread"            // data waits in the kernel, and the process here does not read it
	ReasonNothingSent      = "nothing_sent"      // over RDMA: the queue pair stopped sending while a request is in flight
)

// rdmaPatience is how many times longer silence must last over RDMA: there a
// leg whose peer hangs and one whose own host computes look the same.
const rdmaPatience = 3

// motion is when a leg last moved anything over RDMA.
type motion struct {
	psns map[pairID]uint32
	// rises: its queue pairs were seen to send, so that standing still means
	// something. Not every driver tells how far they are.
	rises   bool
	movedNS int64
}

type pairID struct {
	device string
	lqpn   uint32
}

// watch compares the queue pairs with those of before.
func (m *motion) watch(nowNS int64, pairs []event.QueuePair) {
	now := make(map[pairID]uint32, len(pairs))
	for i := range pairs {
		q := &pairs[i]
		if q.State != "RTS" {
			continue
		}
		id := pairID{q.Device, q.LQPN}
		now[id] = q.SendPSN
		before, known := m.psns[id]
		m.rises = m.rises || known && before != q.SendPSN
		if !known || before != q.SendPSN {
			m.movedNS = nowNS
		}
	}
	if len(now) == 0 {
		*m = motion{}
		return
	}
	m.psns = now
}

// stall finds the legs on which nothing moves though something should. What
// was sent last and never answered owes a reply; over RDMA a queue pair that
// no longer sends is all there is to see, and of several legs over RDMA one
// makes the others wait: then none is named.
func (t *Table) stall(nowNS int64) {
	after := t.cfg.StallAfter
	var owing, frozen []*leg
	still, overRDMA, longest := true, 0, time.Duration(0)
	if t.cfg.InFlight != nil {
		longest = t.cfg.InFlight(nowNS)
	}
	for _, l := range t.names {
		l.plain, l.plainReason = l.out.Transport, l.out.Reason
		l.motion.watch(nowNS, l.out.QueuePairs)
		if reason := l.unread(nowNS, after); reason != "" && l.carries() && l.out.Transport != event.TransportRDMA {
			l.out.Transport, l.out.Reason = event.TransportStalled, reason
			still = false // the hold-up is here
			continue
		}
		if l.role != event.RoleClient || !l.carries() {
			continue
		}
		quiet, owes := l.quiet()
		if l.out.Transport == event.TransportRDMA {
			overRDMA++
		}
		switch {
		case l.out.Transport == event.TransportRDMA && !l.motion.rises:
			still = false // it may be moving, unseen
		case l.out.Transport == event.TransportRDMA:
			quiet = min(quiet, time.Duration(nowNS-l.motion.movedNS))
			still = still && quiet >= after
			if quiet >= rdmaPatience*after {
				frozen = append(frozen, l)
			}
		default:
			still = still && quiet >= after
			if owes && quiet >= after {
				owing = append(owing, l)
			}
		}
	}
	switch {
	case !still || longest < after:
	case len(owing) > 0:
		for _, l := range owing {
			l.out.Transport, l.out.Reason = event.TransportStalled, ReasonReplyOutstanding
		}
	case len(frozen) == 1 && overRDMA == 1 && longest >= rdmaPatience*after:
		frozen[0].out.Transport, frozen[0].out.Reason = event.TransportStalled, ReasonNothingSent
	}
}

// carries says whether the leg is known to carry payload.
func (l *leg) carries() bool {
	switch l.out.Transport {
	case event.TransportTCP, event.TransportFallback, event.TransportRDMA:
		return true
	}
	return false
}

// quiet is how long no socket of the leg has moved, and whether one sent last.
func (l *leg) quiet() (quiet time.Duration, owes bool) {
	quiet = 1 << 62
	for _, s := range l.sockets {
		if !established(s.last.State) || !s.last.HasInfo {
			continue
		}
		quiet = min(quiet, s.last.SinceSend, s.last.SinceReceive)
		owes = owes || s.last.SinceSend < s.last.SinceReceive && payload(&s.last) > handshakeBytes
	}
	return quiet, owes
}

// unread says whether data has been waiting for the process here for that long
// without any of it being read: what waits only grows, or came that long ago.
// A connection that was not accepted is queued, not stalled.
func (l *leg) unread(nowNS int64, after time.Duration) string {
	for _, s := range l.sockets {
		if s.last.Inode == 0 || s.unreadNS == 0 {
			continue
		}
		if nowNS-s.unreadNS >= int64(after) || s.last.SinceReceive >= after {
			return ReasonUnread
		}
	}
	return ""
}

// waits keeps since when what lies in the receive queue was not read from.
// Reading is what was received less what still waits.
func (s *socket) waits(nowNS int64, was *event.TCPSocket) {
	now := &s.last
	read := now.BytesReceived - min(now.BytesReceived, uint64(now.ReceiveQueueBytes))
	before := was.BytesReceived - min(was.BytesReceived, uint64(was.ReceiveQueueBytes))
	switch {
	case !established(now.State) || now.ReceiveQueueBytes == 0:
		s.unreadNS = 0
	case s.unreadNS == 0 || read != before:
		s.unreadNS = nowNS
	}
}
