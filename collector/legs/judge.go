package legs

import (
	"time"

	"grayfail/event"
)

const (
	// handshakeBytes: an engine that moved to RDMA leaves some hundred bytes
	// on its TCP socket; payload is what goes beyond this.
	handshakeBytes = 4096
	// helloBytes bounds the first message of a client that waits to be
	// served: 33 bytes with ggml's RPC.
	helloBytes = 64
	// unackedAfter is how long a peer may leave data unacknowledged, retries
	// included, before it is worth saying: loss at 5% was seen to back off to
	// 1.5 s.
	unackedAfter = 5 * time.Second
	// refusedFor is how long a failed connection stays a reason.
	refusedFor = 10 * time.Second
)

// Reasons that TCP alone gives; those of a fallback come from Config.Join.
const (
	ReasonHelloUnanswered = "hello_unanswered" // queued: the peer's kernel has our first message, no answer came
	ReasonNotAccepted     = "not_accepted"     // queued: the process here has not accepted the connection
	ReasonUnacknowledged  = "unacknowledged"   // data is outstanding and only retransmitted
	ReasonNoSocket        = "no_socket"        // dead, or unknown for a server: no connection left
	ReasonPeerClosed      = "peer_closed"      // dead: the peer ended it, the process here has not noticed
	ReasonClosing         = "closing"          // dead: the process here ended it
	ReasonSYNUnanswered   = "syn_unanswered"   // dead: the peer does not answer
	ReasonConnectFailed   = "connect_failed"   // dead: connections were refused or timed out
	ReasonFINUnanswered   = "fin_unanswered"   // half_open: we ended it, the peer does not hear
	ReasonNotConnected    = "not_connected"    // unknown: nobody here has connected to a configured peer
	ReasonNotRead         = "not_read"         // unknown: its sockets can no longer be read
)

// judge concludes the transport from TCP alone. Where the evidence does not
// say, the answer is unknown, or what was known before as long as a pause may
// just be a reconnect.
//
// The signs are those of a decision table measured with ggml's RPC on a 6.1
// kernel: a client that is queued behind another has sent its 33 byte hello
// and received 0; one served has received an answer; only payload beyond
// 4 kB says that the data itself flows over TCP.
func (l *leg) judge(nowNS int64, settling time.Duration) (event.Transport, string) {
	if l.unreadNS != 0 {
		if nowNS-l.unreadNS >= int64(settling) {
			return event.TransportUnknown, ReasonNotRead
		}
		return l.out.Transport, l.out.Reason
	}
	var connected, settled, carried, stuck bool
	for _, s := range l.sockets {
		if !established(s.last.State) {
			continue
		}
		connected = true
		f := s.facts(nowNS, settling)
		if !f.Settled {
			continue
		}
		settled = true
		if reason := waiting(&f, settling); reason != "" {
			return event.TransportQueued, reason
		}
		carried = carried || f.Payload > handshakeBytes
		stuck = stuck || s.unacknowledged(nowNS, unackedAfter)
	}
	switch {
	case settled:
		reason := ""
		if stuck {
			reason = ReasonUnacknowledged
		}
		if carried {
			return event.TransportTCP, reason
		}
		return event.TransportIdle, reason
	case connected:
		return event.TransportUnknown, "" // too young to say
	}
	return l.judgeLost(nowNS, settling)
}

// judgeLost concludes what the absence of an established connection means.
func (l *leg) judgeLost(nowNS int64, settling time.Duration) (event.Transport, string) {
	var syn, peerClosed, ending bool
	for _, s := range l.sockets {
		switch {
		case s.last.State == event.TCPSynSent:
			syn = true
		case s.last.State == event.TCPCloseWait:
			peerClosed = true
		case closing(s.last.State):
			ending = true
		}
	}
	wasDead := l.out.Transport == event.TransportDead
	refused := l.refusedNS != 0 && nowNS-l.refusedNS < int64(refusedFor)
	if l.lostNS == 0 || nowNS-l.lostNS < int64(settling) {
		// Just lost: perhaps it reconnects.
		return l.out.Transport, l.out.Reason
	}
	switch {
	case l.finUnanswered(nowNS, settling):
		return event.TransportHalfOpen, ReasonFINUnanswered
	case syn:
		return event.TransportDead, ReasonSYNUnanswered
	case refused:
		return event.TransportDead, ReasonConnectFailed
	case wasDead && len(l.sockets) == 0:
		return event.TransportDead, l.out.Reason
	case l.static != nil && !l.hadSettled && len(l.sockets) == 0:
		return event.TransportUnknown, ReasonNotConnected
	case !l.hadSettled:
		return event.TransportUnknown, "" // there were short connections only
	case l.role == event.RoleServer:
		// Whether the client was meant to leave, only the client knows.
		return event.TransportUnknown, ReasonNoSocket
	case peerClosed:
		return event.TransportDead, ReasonPeerClosed
	case ending:
		return event.TransportDead, ReasonClosing
	}
	return event.TransportDead, ReasonNoSocket
}

// waiting says why a settled connection is queued: on the client's side its
// hello was acknowledged and never answered, on the server's the process has
// not accepted it (an accepted socket has an inode, net/ipv4/inet_diag.c).
func waiting(f *SocketFacts, settling time.Duration) string {
	if f.Flow.Role == event.RoleServer {
		if f.Inode == 0 && f.ReceiveQueueBytes > 0 {
			return ReasonNotAccepted
		}
		return ""
	}
	// Payload is what was acknowledged here, as nothing was received.
	if f.HasInfo && f.BytesReceived == 0 && f.Payload > 0 && f.Payload <= helloBytes &&
		f.UnackedSegments == 0 && f.SinceSend >= settling {
		return ReasonHelloUnanswered
	}
	return ""
}

// unacknowledged says whether data has been outstanding for that long with
// nothing but retransmits.
func (s *socket) unacknowledged(nowNS int64, after time.Duration) bool {
	return s.last.HasInfo && s.last.UnackedSegments > 0 &&
		s.last.Retransmits > s.ackRetransmits && nowNS-s.ackNS >= int64(after)
}

// finUnanswered: our FIN is retransmitted to a peer that, for all that its
// kernel knows, still has the connection.
func (l *leg) finUnanswered(nowNS int64, settling time.Duration) bool {
	for _, s := range l.sockets {
		if s.closingNS != 0 && nowNS-s.closingNS >= int64(settling) && s.unacknowledged(nowNS, settling) {
			return true
		}
	}
	return false
}
