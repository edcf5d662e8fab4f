package legs

import (
	"testing"
	"time"

	"grayfail/event"
)

// Sockets of the decision table, as they were measured: the client's side of a
// leg with ggml's RPC.
func served(cookie uint64) sock { return sock{cookie: cookie, acked: 34, received: 36} }
func starved(cookie uint64, quiet time.Duration) sock {
	return sock{cookie: cookie, acked: 34, quiet: quiet}
}
func busy(cookie, acked, received uint64) sock {
	return sock{cookie: cookie, acked: acked, received: received}
}

func TestTransportTCP(t *testing.T) {
	timeline(t, Config{}, []look{
		{at: 0, sockets: []sock{served(1)}, want: map[string]string{peerB: "unknown"}, changes: []string{peerB + " unknown"}, why: "too young; the change names the device"},
		{at: 1, sockets: []sock{busy(1, 2500, 2500)}, want: map[string]string{peerB: "unknown"}, why: "payload, still too young"},
		{at: 2, sockets: []sock{busy(1, 5000, 5000)}, want: map[string]string{peerB: "tcp"}, changes: []string{peerB + " tcp"}},
		{at: 60, sockets: []sock{busy(1, 5000, 5000)}, want: map[string]string{peerB: "tcp"}, why: "known, moving or not"},
		{at: 61, want: map[string]string{peerB: "tcp"}, why: "gone for a moment"},
		{at: 62, sockets: []sock{{cookie: 1, state: event.TCPTimeWait, noInfo: true}}, want: map[string]string{peerB: "tcp"}, why: "TIME-WAIT is no connection"},
		{at: 63, sockets: []sock{{cookie: 1, state: event.TCPTimeWait, noInfo: true}}, want: map[string]string{peerB: "dead no_socket"}, changes: []string{peerB + " dead no_socket"}},
		{at: 70, sockets: []sock{served(2)}, want: map[string]string{peerB: "unknown"}, changes: []string{peerB + " unknown"}, why: "a new connection knows nothing of the old"},
		{at: 72, sockets: []sock{served(2)}, want: map[string]string{peerB: "idle"}, changes: []string{peerB + " idle"}},
	})
}

// TestTransportStartUp: an engine opens four connections one after the other,
// of which three are gone after some hundred milliseconds.
func TestTransportStartUp(t *testing.T) {
	timeline(t, Config{}, []look{
		{at: 0.0, sockets: []sock{busy(1, 300_000, 200)}, want: map[string]string{peerB: "unknown"}, changes: []string{peerB + " unknown"}},
		{at: 0.5, sockets: []sock{busy(2, 300_000, 200)}, want: map[string]string{peerB: "unknown"}},
		{at: 1.0, sockets: []sock{busy(3, 300_000, 200), served(4)}, want: map[string]string{peerB: "unknown"}},
		{at: 2.5, sockets: []sock{served(4)}, want: map[string]string{peerB: "unknown"}, why: "the one that stays is 1.5 s old"},
		{at: 3.0, sockets: []sock{served(4)}, want: map[string]string{peerB: "idle"}, changes: []string{peerB + " idle"}, why: "and carried nothing"},
	})
}

// TestTransportShortOnly: a peer that only ever gets short connections is
// neither alive nor dead.
func TestTransportShortOnly(t *testing.T) {
	timeline(t, Config{}, []look{
		{at: 0, sockets: []sock{busy(1, 9000, 9000)}, want: map[string]string{peerB: "unknown"}, changes: []string{peerB + " unknown"}},
		{at: 1, want: map[string]string{peerB: "unknown"}},
		{at: 30, sockets: []sock{busy(2, 9000, 9000)}, want: map[string]string{peerB: "unknown"}},
		{at: 60, want: map[string]string{peerB: "unknown"}},
	})
}

// TestTransportAtOurStart: the kernel's idle times show that a connection is
// old although we are new.
func TestTransportAtOurStart(t *testing.T) {
	timeline(t, Config{}, []look{
		{at: 0, sockets: []sock{{acked: 34, received: 36, quiet: time.Hour}}, want: map[string]string{peerB: "idle"}, changes: []string{peerB + " idle"}},
	})
	timeline(t, Config{}, []look{
		{at: 0, sockets: []sock{{acked: 1 << 30, received: 1 << 20, quiet: 3 * time.Second}}, want: map[string]string{peerB: "tcp"}, changes: []string{peerB + " tcp"}},
	})
	timeline(t, Config{}, []look{
		{at: 0, sockets: []sock{starved(1, time.Minute)}, want: map[string]string{peerB: "queued hello_unanswered"}, changes: []string{peerB + " queued hello_unanswered"}},
	})
}

func TestTransportQueued(t *testing.T) {
	timeline(t, Config{}, []look{
		{at: 0, sockets: []sock{starved(1, 0)}, want: map[string]string{peerB: "unknown"}, changes: []string{peerB + " unknown"}},
		{at: 1, sockets: []sock{starved(1, time.Second)}, want: map[string]string{peerB: "unknown"}},
		{at: 2, sockets: []sock{starved(1, 2*time.Second)}, want: map[string]string{peerB: "queued hello_unanswered"}, changes: []string{peerB + " queued hello_unanswered"}},
		{at: 60, sockets: []sock{starved(1, time.Minute)}, want: map[string]string{peerB: "queued hello_unanswered"}},
		{at: 61, sockets: []sock{served(1)}, want: map[string]string{peerB: "idle"}, changes: []string{peerB + " idle"}, why: "its turn has come"},
		{at: 62, sockets: []sock{busy(1, 90_000, 100)}, want: map[string]string{peerB: "tcp"}, changes: []string{peerB + " tcp"}},
	})
	// A second client of this host, starved behind the first: the leg says so.
	timeline(t, Config{}, []look{
		{at: 0, sockets: []sock{busy(1, 90_000, 100), starved(2, 0)}, want: map[string]string{peerB: "unknown"}, changes: []string{peerB + " unknown"}},
		{at: 3, sockets: []sock{busy(1, 90_000, 100), starved(2, 3*time.Second)}, want: map[string]string{peerB: "queued hello_unanswered"}, changes: []string{peerB + " queued hello_unanswered"}},
	})
}

// TestTransportNotQueued: what looks like waiting and is not known to be.
func TestTransportNotQueued(t *testing.T) {
	for name, s := range map[string]sock{
		"nothing sent yet":             {acked: 1, quiet: time.Minute},
		"the hello is not acked":       {acked: 1, unacked: 1, quiet: time.Minute},
		"some of it is not acked":      {acked: 34, unacked: 1, quiet: time.Minute},
		"too long for a hello":         {acked: 402, quiet: time.Minute},
		"an answer came":               {acked: 34, received: 1, quiet: time.Minute},
		"sent only a moment ago":       {acked: 34, quiet: time.Second},
		"a server that only received":  {server: true, local: "10.77.2.1:50052", peer: "10.77.2.9:40000", acked: 33, quiet: time.Minute},
		"a server nobody has spoke to": {server: true, local: "10.77.2.1:50052", peer: "10.77.2.9:40000", orphan: true, quiet: time.Minute},
	} {
		table := New(Config{Ports: []uint16{50052}})
		table.Update(seconds(0), sockets(s), []NetnsInfo{ownNet})
		table.Update(seconds(5), sockets(s), []NetnsInfo{ownNet})
		legs := table.Legs()
		if len(legs) != 1 || legs[0].Transport != event.TransportIdle {
			t.Errorf("%s: %+v, want idle", name, legs)
		}
	}
}

// TestTransportNotAccepted: on the worker, a connection that its process has
// not accepted has bytes waiting and no inode.
func TestTransportNotAccepted(t *testing.T) {
	waiting := sock{server: true, local: "10.77.2.1:50052", peer: "10.77.2.9:40000", orphan: true, received: 33, queue: 33}
	timeline(t, Config{}, []look{
		{at: 0, sockets: []sock{waiting}, want: map[string]string{"from 10.77.2.9": "unknown"}, changes: []string{"from 10.77.2.9 unknown"}},
		{at: 2, sockets: []sock{waiting}, want: map[string]string{"from 10.77.2.9": "queued not_accepted"}, changes: []string{"from 10.77.2.9 queued not_accepted"}},
		{at: 4, want: map[string]string{"from 10.77.2.9": "queued not_accepted"}},
		{at: 9, want: map[string]string{"from 10.77.2.9": "unknown no_socket"}, changes: []string{"from 10.77.2.9 unknown no_socket"}, why: "a server's client may leave: that is not death"},
	})
}

func TestTransportSYN(t *testing.T) {
	syn := func(cookie uint64) sock {
		return sock{cookie: cookie, state: event.TCPSynSent, unacked: 1, retransmits: 1}
	}
	timeline(t, Config{}, []look{
		{at: 0, sockets: []sock{syn(1)}, want: map[string]string{peerB: "unknown"}, changes: []string{peerB + " unknown"}},
		{at: 1, sockets: []sock{syn(1)}, want: map[string]string{peerB: "unknown"}},
		{at: 2, sockets: []sock{syn(1)}, want: map[string]string{peerB: "dead syn_unanswered"}, changes: []string{peerB + " dead syn_unanswered"}},
		{at: 3, want: map[string]string{peerB: "dead syn_unanswered"}, why: "between two tries"},
		{at: 4, sockets: []sock{syn(2)}, want: map[string]string{peerB: "dead syn_unanswered"}},
		{at: 5, sockets: []sock{served(2)}, want: map[string]string{peerB: "unknown"}, changes: []string{peerB + " unknown"}},
		{at: 7, sockets: []sock{served(2), syn(3)}, want: map[string]string{peerB: "idle"}, changes: []string{peerB + " idle"}},
	})
}

// TestTransportRefused: connections that sock_diag is too slow to see.
func TestTransportRefused(t *testing.T) {
	refused := func(at float64) func(*Table) {
		return func(table *Table) {
			table.Connection(event.Connection{EndNS: seconds(at), Flow: sock{}.event().Flow})
		}
	}
	static := Config{Static: []Static{{Name: "rpc-b", Peer: sock{}.event().Flow.Peer}}}
	timeline(t, static, []look{
		{at: 0, want: map[string]string{"rpc-b": "unknown"}},
		{at: 5, do: refused(4.9), want: map[string]string{"rpc-b": "dead connect_failed"}, changes: []string{"rpc-b dead connect_failed"}},
		{at: 60, want: map[string]string{"rpc-b": "dead connect_failed"}, why: "nothing has come to say otherwise"},
		{at: 70, sockets: []sock{served(1)}, want: map[string]string{"rpc-b": "unknown"}, changes: []string{"rpc-b unknown"}},
		{at: 72, do: refused(71.9), sockets: []sock{served(1)}, want: map[string]string{"rpc-b": "idle"}, changes: []string{"rpc-b idle"}, why: "one refusal beside a living connection"},
	})
	// Established ones and servers are no evidence.
	timeline(t, static, []look{
		{at: 0, want: map[string]string{"rpc-b": "unknown"}},
		{at: 5, do: func(table *Table) {
			table.Connection(event.Connection{Established: true, EndNS: seconds(4), Flow: sock{}.event().Flow})
			table.Connection(event.Connection{EndNS: seconds(4), Flow: sock{server: true, local: "10.77.2.1:50052"}.event().Flow})
			table.Connection(event.Connection{EndNS: seconds(4), Flow: sock{peer: "10.77.2.2:80"}.event().Flow})
		}, want: map[string]string{"rpc-b": "unknown not_connected"}},
	})
}

// TestTransportHalfOpen: one side died while the link was dead. Its own FIN is
// retransmitted to a peer that still has the connection.
func TestTransportHalfOpen(t *testing.T) {
	fin := func(retransmits uint64) sock {
		return sock{cookie: 1, state: event.TCPFinWait1, acked: 34, received: 36, unacked: 1, retransmits: retransmits, orphan: true}
	}
	timeline(t, Config{}, []look{
		{at: 0, sockets: []sock{served(1)}, want: map[string]string{peerB: "unknown"}, changes: []string{peerB + " unknown"}},
		{at: 2, sockets: []sock{served(1)}, want: map[string]string{peerB: "idle"}, changes: []string{peerB + " idle"}},
		{at: 3, sockets: []sock{fin(0)}, want: map[string]string{peerB: "idle"}, why: "just closed"},
		{at: 4, sockets: []sock{fin(1)}, want: map[string]string{peerB: "idle"}},
		{at: 6, sockets: []sock{fin(3)}, want: map[string]string{peerB: "half_open fin_unanswered"}, changes: []string{peerB + " half_open fin_unanswered"}},
		{at: 60, sockets: []sock{fin(7)}, want: map[string]string{peerB: "half_open fin_unanswered"}},
		{at: 61, want: map[string]string{peerB: "dead no_socket"}, changes: []string{peerB + " dead no_socket"}},
	})
	// Without retransmits it is only slow to end.
	timeline(t, Config{}, []look{
		{at: 0, sockets: []sock{{acked: 34, received: 36, quiet: time.Hour}}, want: map[string]string{peerB: "idle"}, changes: []string{peerB + " idle"}},
		{at: 1, sockets: []sock{fin(0)}, want: map[string]string{peerB: "idle"}},
		{at: 9, sockets: []sock{fin(0)}, want: map[string]string{peerB: "dead closing"}, changes: []string{peerB + " dead closing"}},
	})
}

func TestTransportPeerClosed(t *testing.T) {
	closeWait := sock{cookie: 1, state: event.TCPCloseWait, acked: 34, received: 37, quiet: time.Hour}
	timeline(t, Config{}, []look{
		{at: 0, sockets: []sock{{cookie: 1, acked: 34, received: 36, quiet: time.Hour}}, want: map[string]string{peerB: "idle"}, changes: []string{peerB + " idle"}},
		{at: 1, sockets: []sock{closeWait}, want: map[string]string{peerB: "idle"}},
		{at: 3, sockets: []sock{closeWait}, want: map[string]string{peerB: "dead peer_closed"}, changes: []string{peerB + " dead peer_closed"}},
	})
}

// TestUnacknowledged: data that is only retransmitted is said, and takes
// nothing away from what is known.
func TestUnacknowledged(t *testing.T) {
	stuck := func(retransmits uint64) sock {
		return sock{cookie: 1, acked: 90_000, received: 90_000, unacked: 4, retransmits: retransmits, quiet: time.Second}
	}
	timeline(t, Config{}, []look{
		{at: 0, sockets: []sock{{cookie: 1, acked: 90_000, received: 90_000, quiet: 5 * time.Second}}, want: map[string]string{peerB: "tcp"}, changes: []string{peerB + " tcp"}},
		{at: 1, sockets: []sock{stuck(0)}, want: map[string]string{peerB: "tcp"}},
		{at: 3, sockets: []sock{stuck(3)}, want: map[string]string{peerB: "tcp"}, why: "5% loss backs off to 1.5 s too"},
		{at: 6, sockets: []sock{stuck(5)}, want: map[string]string{peerB: "tcp unacknowledged"}, changes: []string{peerB + " tcp unacknowledged"}},
		{at: 7, sockets: []sock{busy(1, 90_001, 90_000)}, want: map[string]string{peerB: "tcp"}, changes: []string{peerB + " tcp"}},
	})
	// Outstanding, but nothing was sent again: the peer's window is closed.
	timeline(t, Config{}, []look{
		{at: 0, sockets: []sock{{cookie: 1, acked: 90_000, received: 1, unacked: 4, quiet: time.Minute}}, want: map[string]string{peerB: "tcp"}, changes: []string{peerB + " tcp"}},
		{at: 60, sockets: []sock{{cookie: 1, acked: 90_000, received: 1, unacked: 4, quiet: time.Minute}}, want: map[string]string{peerB: "tcp"}},
	})
}

// TestUnread: while a namespace cannot be read, nothing is concluded from what
// is missing; what is known fades.
func TestUnread(t *testing.T) {
	blind := []NetnsInfo{{Inode: ownInode, Unread: true}}
	old := sock{cookie: 1, acked: 90_000, received: 90_000, quiet: 5 * time.Second}
	table := timeline(t, Config{}, []look{
		{at: 0, sockets: []sock{old}, want: map[string]string{peerB: "tcp"}, changes: []string{peerB + " tcp"}},
		{at: 1, nets: blind, want: map[string]string{peerB: "tcp"}},
		{at: 3, nets: blind, want: map[string]string{peerB: "unknown not_read"}, changes: []string{peerB + " unknown not_read"}},
		{at: 4, nets: blind, sockets: []sock{old}, want: map[string]string{peerB: "tcp"}, changes: []string{peerB + " tcp"}, why: "others are missing, this one was read"},
		{at: 5, sockets: []sock{old}, want: map[string]string{peerB: "tcp"}},
	})
	if leg := one(t, table, peerB); leg.BytesAcked != 90_000 {
		t.Errorf("the sum moved while nothing was read: %+v", leg)
	}
}

// TestClockSetBack: a leg's state outlives a step of the wall clock, and a new
// connection settles in its own time.
func TestClockSetBack(t *testing.T) {
	old := sock{cookie: 1, acked: 90_000, received: 90_000, quiet: 5 * time.Second}
	table := timeline(t, Config{}, []look{
		{at: 7200, sockets: []sock{old}, want: map[string]string{peerB: "tcp"}, changes: []string{peerB + " tcp"}},
		{at: 0, sockets: []sock{busy(1, 90_000, 90_000), served(2)}, want: map[string]string{peerB: "tcp"}, why: "two hours back"},
		{at: 2, sockets: []sock{served(2)}, want: map[string]string{peerB: "idle"}, changes: []string{peerB + " idle"}},
		{at: 3, want: map[string]string{peerB: "idle"}},
		{at: 1, want: map[string]string{peerB: "idle"}, why: "back again while it is lost"},
		{at: 3, want: map[string]string{peerB: "dead no_socket"}, changes: []string{peerB + " dead no_socket"}},
	})
	if l := one(t, table, peerB); l.GoneNS != seconds(1) {
		t.Errorf("gone at %d, want %d", l.GoneNS, seconds(1))
	}
}
