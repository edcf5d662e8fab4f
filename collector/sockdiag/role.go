package sockdiag

import "grayfail/event"

// roles decides what the sockets of one namespace are: of watched ports the
// local one makes a server, the peer's a client.
type roles struct {
	watched   map[uint16]bool
	listening map[uint16]bool // local ports with a listener
}

// role tells a socket's role. ours is false for listeners and for sockets
// that only happen to have been given a watched port as ephemeral port (50052
// lies in the default ip_local_port_range).
func (r roles) role(s *Socket) (role event.Role, ours bool) {
	local, peer := r.watched[s.Flow.Local.Port()], r.watched[s.Flow.Peer.Port()]
	switch {
	case s.State == event.TCPListen:
		return 0, false
	case !local:
		return event.RoleClient, peer
	case r.listening[s.Flow.Local.Port()]:
		return event.RoleServer, true
	case opened(s) || s.State == event.TCPSynSent:
		return event.RoleClient, peer
	}
	return event.RoleServer, true
}

// opened says whether this side surely sent the SYN: only then does
// bytes_acked count one more than the payload that was acknowledged, because
// the SYN takes a sequence number (net/ipv4/tcp_input.c, tcp_ack in SYN_SENT;
// an accepted socket starts after its SYN).
func opened(s *Socket) bool {
	settled := s.State == event.TCPEstablished || s.State == event.TCPCloseWait
	return settled && s.InfoSize >= offBytesRetrans+8 && s.UnackedSegments == 0 && s.NotSent == 0 &&
		s.BytesAcked == s.BytesSent-s.BytesRetrans+1
}
