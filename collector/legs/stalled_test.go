package legs

import (
	"testing"
	"time"

	"grayfail/event"
)

const peerC = "10.77.3.2:50052"

// asked has sent last, that long ago, and heard nothing since.
func asked(cookie uint64, quiet time.Duration) sock {
	return sock{cookie: cookie, acked: 50_000, received: 50_000, quiet: quiet, unheard: time.Second}
}

func answered(cookie uint64, quiet time.Duration) sock {
	return sock{cookie: cookie, peer: peerC, acked: 50_000, received: 50_000, quiet: quiet}
}

// TestStalledTCP: the peer's process is stopped. Its kernel acknowledges, and
// no answer comes.
func TestStalledTCP(t *testing.T) {
	inFlight := time.Duration(0)
	both := func(b, c string) map[string]string { return map[string]string{peerB: b, peerC: c} }
	timeline(t, Config{InFlight: func(int64) time.Duration { return inFlight }}, []look{
		{at: 0, sockets: []sock{asked(1, 60*time.Second), answered(2, 60*time.Second)}, want: both("tcp", "tcp"), changes: []string{peerB + " tcp", peerC + " tcp"}, why: "no request: a last message without an answer is in order"},
		{at: 5, do: func(*Table) { inFlight = 5 * time.Second }, sockets: []sock{asked(1, 65*time.Second), answered(2, 65*time.Second)}, want: both("tcp", "tcp"), why: "a request has just begun"},
		{at: 9, do: func(*Table) { inFlight = 9 * time.Second }, sockets: []sock{asked(1, 9*time.Second), answered(2, 9*time.Second)}, want: both("tcp", "tcp"), why: "a long prompt"},
		{at: 10, do: func(*Table) { inFlight = 10 * time.Second }, sockets: []sock{asked(1, 10*time.Second), answered(2, 10*time.Second)}, want: both("stalled reply_outstanding", "tcp"), changes: []string{peerB + " stalled reply_outstanding"}, why: "the other one owes nothing"},
		{at: 11, sockets: []sock{asked(1, 11*time.Second), answered(2, time.Second)}, want: both("tcp", "tcp"), changes: []string{peerB + " tcp"}, why: "the other one moves: this one waits for it"},
		{at: 22, sockets: []sock{asked(1, 22*time.Second), answered(2, 12*time.Second)}, want: both("stalled reply_outstanding", "tcp"), changes: []string{peerB + " stalled reply_outstanding"}},
		{at: 23, sockets: []sock{busy(1, 50_000, 60_000), answered(2, 13*time.Second)}, want: both("tcp", "tcp"), changes: []string{peerB + " tcp"}, why: "the answer came"},
		{at: 40, sockets: []sock{asked(1, 17*time.Second), answered(2, 30*time.Second)}, want: both("stalled reply_outstanding", "tcp"), changes: []string{peerB + " stalled reply_outstanding"}},
		{at: 41, do: func(*Table) { inFlight = 0 }, sockets: []sock{asked(1, 18*time.Second), answered(2, 31*time.Second)}, want: both("tcp", "tcp"), changes: []string{peerB + " tcp"}, why: "the request was given up"},
	})
}

// TestStalledUnread: the process here does not read what has arrived.
func TestStalledUnread(t *testing.T) {
	from := "from 10.77.2.2"
	serving := func(received uint64, queue uint32) []sock {
		return []sock{{cookie: 1, server: true, local: "10.77.2.1:50052", peer: "10.77.2.2:40000", acked: 90_000, received: received, queue: queue}}
	}
	is := func(s string) map[string]string { return map[string]string{from: s} }
	timeline(t, Config{}, []look{
		{at: 0, sockets: serving(10_000, 0), want: is("unknown"), changes: []string{from + " unknown"}},
		{at: 2, sockets: serving(20_000, 9000), want: is("tcp"), changes: []string{from + " tcp"}},
		{at: 8, sockets: serving(60_000, 49_000), want: is("tcp"), why: "more waits, and none is read"},
		{at: 11, sockets: serving(70_000, 49_000), want: is("tcp"), why: "some was read"},
		{at: 20, sockets: serving(90_000, 69_000), want: is("tcp")},
		{at: 21, sockets: serving(90_000, 69_000), want: is("stalled unread"), changes: []string{from + " stalled unread"}},
		{at: 22, sockets: serving(90_000, 0), want: is("tcp"), changes: []string{from + " tcp"}, why: "all was read"},
	})
}

// What has been waiting for long is told at the first look.
func TestStalledAtOurStart(t *testing.T) {
	waiting := func(quiet time.Duration) []sock {
		return []sock{{cookie: 1, acked: 90_000, received: 90_000, queue: 5000, quiet: quiet}}
	}
	timeline(t, Config{}, []look{
		{at: 0, sockets: waiting(9 * time.Second), want: map[string]string{peerB: "tcp"}, changes: []string{peerB + " tcp"}},
		{at: 1, sockets: waiting(10 * time.Second), want: map[string]string{peerB: "stalled unread"}, changes: []string{peerB + " stalled unread"}},
	})
}

// TestStalledRDMA: the peer's process is stopped: queue pairs stay in RTS and
// send no more.
func TestStalledRDMA(t *testing.T) {
	inFlight := time.Duration(0)
	psn := map[string]uint32{peerB: 7, peerC: 7}
	join := func(_ int64, _ Facts, leg *event.Leg) {
		leg.Transport, leg.RDMADevice, leg.RDMAPort = event.TransportRDMA, "rxe0", 1
		leg.QueuePairs = []event.QueuePair{{Device: "rxe0", Port: 1, LQPN: uint32(leg.Peer.Addr().As4()[2]), Type: "RC", State: "RTS", SendPSN: psn[leg.Name]}}
	}
	still := func(cookie uint64, peer string) sock {
		return sock{cookie: cookie, peer: peer, acked: 34, received: 36, quiet: time.Hour}
	}
	both := []sock{still(1, peerB), still(2, peerC)}
	at := func(s float64, b, c uint32, sockets []sock, want map[string]string, why string, changes ...string) look {
		return look{
			at: s, do: func(*Table) { psn[peerB], psn[peerC], inFlight = b, c, time.Duration(s*1e9) },
			sockets: sockets, want: want, changes: changes, why: why,
		}
	}
	one := func(b string) map[string]string { return map[string]string{peerB: b} }
	two := map[string]string{peerB: "rdma", peerC: "rdma"}
	timeline(t, Config{InFlight: func(int64) time.Duration { return inFlight }, Join: join}, []look{
		at(0, 7, 7, both[:1], one("rdma"), "", peerB+" rdma"),
		at(60, 7, 7, both[:1], one("rdma"), "not seen to send: a driver may not tell"),
		at(61, 8, 7, both[:1], one("rdma"), "it sends"),
		at(90, 8, 7, both[:1], one("rdma"), "its own host may be computing"),
		at(91, 8, 7, both[:1], one("stalled nothing_sent"), "", peerB+" stalled nothing_sent"),
		at(92, 9, 7, both[:1], one("rdma"), "it sends again", peerB+" rdma"),
		at(93, 9, 7, both, two, "a second leg", peerC+" rdma"),
		at(94, 9, 8, both, two, "which sends"),
		at(200, 9, 8, both, two, "both stand still: one of them makes the other wait"),
	})
}
