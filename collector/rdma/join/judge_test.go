package join

import (
	"testing"
	"time"

	"grayfail/collector/legs"
	"grayfail/event"
)

const mega = 1 << 20

// TestRDMA: a queue pair on the port of the address, and a socket that stands
// still. Moving or not, it stays so while the connection lives.
func TestRDMA(t *testing.T) {
	leg := []sock{{peer: "1"}}
	timeline(t, newWorld(Options{}, nil), []step{
		{at: 0, sockets: []sock{{peer: "1", quiet: time.Millisecond}}, pairs: pairsOf("mlx4_0/1 RTS"), want: is("w1", "unknown mlx4_0/1"), why: "too young"},
		{at: 3, sockets: leg, pairs: pairsOf("mlx4_0/1 RTS"), want: is("w1", "rdma mlx4_0/1")},
		{at: 4, sockets: leg, stale: true, want: is("w1", "rdma mlx4_0/1")},
		{at: 90, sockets: leg, stale: true, want: is("w1", "rdma mlx4_0/1"), why: "no list for long: known stays"},
		{at: 91, sockets: leg, missing: []string{"mlx4_0"}, want: is("w1", "rdma mlx4_0/1"), why: "could not be listed"},
		{at: 95, sockets: leg, want: is("w1", "unknown queue_pair_gone mlx4_0/1"), why: "TCP lives, the queue pair does not"},
		{at: 96, sockets: []sock{{peer: "1", payload: mega, moves: true}}, want: is("w1", "fallback no_queue_pair mlx4_0/1")},
	})
}

// TestNewConnection knows nothing of the one before.
func TestNewConnection(t *testing.T) {
	timeline(t, newWorld(Options{}, nil), []step{
		{at: 0, sockets: []sock{{peer: "1", cookie: 1}}, pairs: pairsOf("mlx4_0/1 RTS"), want: is("w1", "rdma mlx4_0/1")},
		{at: 1, pairs: pairsOf("mlx4_0/1 RTS"), want: is("w1", "rdma mlx4_0/1"), why: "perhaps it reconnects"},
		{at: 2, sockets: []sock{{peer: "1", cookie: 2, quiet: time.Millisecond}}, want: is("w1", "unknown mlx4_0/1")},
		{at: 5, sockets: []sock{{peer: "1", cookie: 2, payload: mega, moves: true}}, want: is("w1", "fallback no_queue_pair mlx4_0/1")},
	})
}

// TestPortNotProbed is a process that asks port 1 of each device: the leg of
// the second port falls back, and comes back once it has its queue pair.
func TestPortNotProbed(t *testing.T) {
	both := func(payload uint64, moves bool) []sock {
		return []sock{{peer: "1"}, {peer: "2", local: port2, payload: payload, moves: moves}}
	}
	timeline(t, newWorld(Options{}, nil), []step{
		{at: 0, sockets: both(0, true), pairs: pairsOf("mlx4_0/1 RTS"), want: is("w1", "rdma mlx4_0/1", "w2", "unknown mlx4_0/2")},
		{at: 2, sockets: both(0, false), pairs: pairsOf("mlx4_0/1 RTS"), want: is("w1", "rdma mlx4_0/1", "w2", "idle mlx4_0/2"), why: "nothing carried yet"},
		{at: 3, sockets: both(4000, true), pairs: pairsOf("mlx4_0/1 RTS"), want: is("w1", "rdma mlx4_0/1", "w2", "idle mlx4_0/2"), why: "no more than a handshake"},
		{at: 4, sockets: both(mega, true), pairs: pairsOf("mlx4_0/1 RTS"), want: is("w1", "rdma mlx4_0/1", "w2", "fallback port_not_probed mlx4_0/2")},
		{at: 60, sockets: both(mega, false), pairs: pairsOf("mlx4_0/1 RTS"), want: is("w1", "rdma mlx4_0/1", "w2", "fallback port_not_probed mlx4_0/2"), why: "moving or not"},
		{at: 61, sockets: both(mega+1, true), pairs: pairsOf("mlx4_0/1 RTS", "mlx4_0/2 RTS"), want: is("w1", "rdma mlx4_0/1", "w2", "fallback port_not_probed mlx4_0/2"), why: "a queue pair, and TCP still moves"},
		{at: 62, sockets: both(mega+1, false), pairs: pairsOf("mlx4_0/1 RTS", "mlx4_0/2 RTS"), want: is("w1", "rdma mlx4_0/1", "w2", "rdma mlx4_0/2")},
	})
}

// TestMemlock: two legs of one process on one port and room for one. Which of
// them has the queue pair shows as soon as one of them carries something.
func TestMemlock(t *testing.T) {
	process := func(int) Process {
		return Process{Limited: true, MemlockBytes: 8192 << 10, PinnedBytes: 6400 << 10}
	}
	two := func(payload uint64, moves bool) []sock {
		return []sock{{peer: "1"}, {peer: "2", payload: payload, moves: moves}}
	}
	one := pairsOf("mlx4_0/1 RTS")
	timeline(t, newWorld(Options{Process: process}, nil), []step{
		{at: 0, sockets: two(0, false)[:1], pairs: one, want: is("w1", "rdma mlx4_0/1")},
		{at: 3, sockets: two(0, false), pairs: one, want: is("w1", "rdma mlx4_0/1", "w2", "idle mlx4_0/1"), why: "the first has it"},
		{at: 4, sockets: two(mega, true), pairs: one, want: is("w1", "rdma mlx4_0/1", "w2", "fallback memlock mlx4_0/1")},
	})
	// We come later than both, and neither has carried anything.
	const open, tcp = "unknown mlx4_0/1", "fallback memlock mlx4_0/1"
	timeline(t, newWorld(Options{Process: process}, nil), []step{
		{at: 1, sockets: []sock{{peer: "1", cookie: 1}}, pairs: one, want: is("w1", "rdma mlx4_0/1"), why: "the only one"},
		{at: 4, sockets: two(mega, true)[1:], pairs: one, want: is("w1", "rdma mlx4_0/1", "w2", "unknown mlx4_0/1"), why: "the other one is gone"},
	})
	w := newWorld(Options{Process: process}, nil)
	w.look(&step{at: 0, sockets: two(0, false), pairs: one})
	timeline(t, w, []step{
		{at: 3, sockets: two(0, false), pairs: one, want: is("w1", open, "w2", open)},
		{at: 4, sockets: two(0, false), pairs: one, want: is("w1", open, "w2", open)},
	})
	timeline(t, w, []step{{at: 5, sockets: two(mega, true), pairs: one, want: is("w1", "rdma mlx4_0/1", "w2", tcp)}})
	// We come when nothing moves any more: what had carried payload over TCP
	// has no queue pair as long as the other one may be the one that has it.
	timeline(t, newWorld(Options{Process: process}, nil), []step{
		{at: 0, sockets: two(mega, false), pairs: one, want: is("w1", "rdma mlx4_0/1", "w2", tcp)},
	})
	timeline(t, newWorld(Options{Process: process}, nil), []step{
		{at: 0, sockets: []sock{{peer: "1", payload: mega}, {peer: "2", payload: mega}}, pairs: one, want: is("w1", open, "w2", open), why: "either may have it"},
	})
}

// reasonOf is the reason of one leg over port 1 that carries payload on TCP.
func reasonOf(t *testing.T, opts Options, s step, leg sock) string {
	t.Helper()
	w := newWorld(opts, nil)
	leg.peer, leg.payload, leg.moves = "1", mega, true
	s.sockets = []sock{leg}
	w.look(&s)
	s.at += 3
	return w.look(&s)["w1"]
}

func TestReasons(t *testing.T) {
	down := cards()
	down[0].State, down[0].Active = "DOWN", false
	v1 := cards()
	v1[0].GIDs[0].Type = "IB/RoCE v1"
	both := cards()
	both[0].GIDs = append(both[0].GIDs, event.GID{Addr: addr(port1), Type: "IB/RoCE v1"})
	room := Process{Limited: true, MemlockBytes: 64 << 20}
	full := Process{Limited: true, MemlockBytes: 8 << 20, PinnedBytes: 6400 << 10}
	with := func(p Process, f func(*Process)) Process { f(&p); return p }
	for name, c := range map[string]struct {
		process Process
		step    step
		leg     sock
		want    string
	}{
		"nothing known":               {want: "fallback no_queue_pair mlx4_0/1"},
		"room to lock":                {process: room, want: "fallback no_queue_pair mlx4_0/1"},
		"no room":                     {process: full, want: "fallback memlock mlx4_0/1"},
		"no room, on port 2":          {process: full, leg: sock{local: port2}, want: "fallback port_not_probed mlx4_0/2"},
		"no limit":                    {process: Process{PinnedBytes: 1 << 40}, want: "fallback no_queue_pair mlx4_0/1"},
		"told not to":                 {process: with(room, func(p *Process) { p.NoRDMA = true }), want: "fallback opted_out mlx4_0/1"},
		"told to use another":         {process: with(full, func(p *Process) { p.Device = "none" }), want: "fallback opted_out mlx4_0/1"},
		"told to use this one":        {process: with(full, func(p *Process) { p.Device = "mlx4_0" }), want: "fallback memlock mlx4_0/1"},
		"told not to, and does":       {process: with(room, func(p *Process) { p.NoRDMA = true }), step: step{pairs: pairsOf("rxe0/1 RTS")}, want: "fallback no_queue_pair mlx4_0/1"},
		"no device":                   {process: with(full, func(p *Process) { p.NoDevices = true }), want: "fallback no_device_access mlx4_0/1"},
		"port down":                   {process: full, step: step{ports: down}, want: "fallback port_down mlx4_0/1"},
		"RoCE v1":                     {process: full, step: step{ports: v1}, want: "fallback not_roce_v2 mlx4_0/1"},
		"RoCE v1 and v2":              {process: full, step: step{ports: both}, want: "fallback memlock mlx4_0/1"},
		"queue pair in RESET":         {step: step{pairs: pairsOf("mlx4_0/0 RESET")}, want: "fallback no_queue_pair mlx4_0/1"},
		"of another process":          {step: step{pairs: []event.QueuePair{qp("mlx4_0/1 RTS", 9)}}, want: "fallback no_queue_pair mlx4_0/1"},
		"another device":              {step: step{pairs: pairsOf("rxe0/1 RTS")}, want: "fallback no_queue_pair mlx4_0/1"},
		"another port":                {step: step{pairs: pairsOf("mlx4_0/2 RTS")}, want: "fallback no_queue_pair mlx4_0/1"},
		"IPv6":                        {leg: sock{local: port1v6}, want: "fallback no_queue_pair mlx4_0/1"},
		"IPv4-mapped":                 {leg: sock{local: "::ffff:10.9.2.1"}, want: "fallback port_not_probed mlx4_0/2"},
		"the kernel's":                {step: step{pairs: []event.QueuePair{{Device: "mlx4_0", Port: 1, Type: "RC", State: "RTS", KernelName: "nvme_rdma"}}}, want: "fallback no_queue_pair mlx4_0/1"},
		"management":                  {step: step{pairs: []event.QueuePair{{Device: "mlx4_0", Port: 1, Type: "GSI", State: "RTS"}}}, want: "fallback no_queue_pair mlx4_0/1"},
		"whose is it":                 {step: step{pairs: []event.QueuePair{{Device: "mlx4_0", Port: 1, Type: "RC", State: "RTS"}}}, want: "unknown owner_unknown mlx4_0/1"},
		"whose is it, elsewhere":      {step: step{pairs: []event.QueuePair{{Device: "mlx4_0", Port: 2, Type: "RC", State: "RTS"}}}, want: "fallback no_queue_pair mlx4_0/1"},
		"ready to receive":            {step: step{pairs: pairsOf("mlx4_0/1 RTR")}, want: "unknown owner_unknown mlx4_0/1"},
		"not listed":                  {step: step{missing: []string{"mlx4_0"}}, want: "unknown not_listed mlx4_0/1"},
		"another device not listed":   {step: step{missing: []string{"rxe0"}}, want: "fallback no_queue_pair mlx4_0/1"},
		"never listed":                {step: step{off: true}, want: "unknown not_listed mlx4_0/1"},
		"nobody's socket":             {leg: sock{nobody: true}, process: full, want: "fallback no_queue_pair mlx4_0/1"},
		"nobody's socket, port 2":     {leg: sock{nobody: true, local: port2}, want: "fallback port_not_probed mlx4_0/2"},
		"nobody's socket, and pairs":  {leg: sock{nobody: true}, step: step{pairs: pairsOf("mlx4_0/1 RTS")}, want: "unknown owner_unknown mlx4_0/1"},
		"no GID":                      {leg: sock{local: bridge}, want: "tcp"},
		"no RDMA":                     {step: step{ports: []event.RDMAPort{}}, want: "tcp"},
		"its queue pair is in use by": {step: step{pairs: pairsOf("mlx4_0/1 RTS")}, want: "unknown mlx4_0/1"},
	} {
		got := reasonOf(t, Options{Process: func(int) Process { return c.process }}, c.step, c.leg)
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestPeerWithoutRDMA: the queue pair that was made for the connection never
// came to anything and went away.
func TestPeerWithoutRDMA(t *testing.T) {
	young := []sock{{peer: "1", quiet: 100 * time.Millisecond}}
	busy := []sock{{peer: "1", payload: mega, moves: true}}
	timeline(t, newWorld(Options{}, nil), []step{
		{at: 0, sockets: young, pairs: pairsOf("mlx4_0/0 RESET"), want: is("w1", "unknown mlx4_0/1")},
		{at: 5, sockets: busy, want: is("w1", "fallback peer_without_rdma mlx4_0/1")},
		{at: 600, sockets: busy, want: is("w1", "fallback peer_without_rdma mlx4_0/1")},
	})
	timeline(t, newWorld(Options{}, nil), []step{
		{at: 0, sockets: young, pairs: pairsOf("mlx4_0/0 RESET"), want: is("w1", "unknown mlx4_0/1")},
		{at: 2, sockets: young, pairs: pairsOf("mlx4_0/1 INIT"), want: is("w1", "idle mlx4_0/1"), why: "it comes to something"},
		{at: 5, sockets: busy, want: is("w1", "fallback no_queue_pair mlx4_0/1")},
	})
	timeline(t, newWorld(Options{}, nil), []step{
		{at: -60, pairs: pairsOf("mlx4_0/0 RESET"), want: is(), why: "long before"},
		{at: 0, sockets: young, want: is("w1", "unknown mlx4_0/1")},
		{at: 5, sockets: busy, want: is("w1", "fallback no_queue_pair mlx4_0/1")},
	})
}

// TestPortDown and up again: then another reason has to be found.
func TestPortDown(t *testing.T) {
	down := cards()
	down[0].State, down[0].Active = "DOWN", false
	busy := []sock{{peer: "1", payload: mega, moves: true}}
	timeline(t, newWorld(Options{}, nil), []step{
		{at: 0, ports: down, sockets: busy, want: is("w1", "unknown mlx4_0/1")},
		{at: 3, ports: down, sockets: busy, want: is("w1", "fallback port_down mlx4_0/1")},
		{at: 4, stale: true, sockets: busy, want: is("w1", "fallback no_queue_pair mlx4_0/1")},
	})
}

// TestListAge: a list that is older than the connection says nothing of it.
func TestListAge(t *testing.T) {
	busy := []sock{{peer: "1", payload: mega, moves: true}}
	timeline(t, newWorld(Options{}, nil), []step{
		{at: 0, sockets: busy, want: is("w1", "unknown mlx4_0/1")},
		{at: 3, sockets: busy, stale: true, want: is("w1", "unknown mlx4_0/1"), why: "listed as it connected"},
		{at: 5, sockets: busy, pairs: pairsOf("mlx4_0/1 RTS"), want: is("w1", "unknown mlx4_0/1")},
		{at: 6, sockets: []sock{{peer: "1", payload: mega}}, stale: true, want: is("w1", "rdma mlx4_0/1"), why: "payload was before"},
	})
}

// TestTCPKnowsBetter: what is queued, half-open or dead stays.
func TestTCPKnowsBetter(t *testing.T) {
	starved := []sock{{peer: "1", starved: true}}
	timeline(t, newWorld(Options{}, nil), []step{
		{at: 0, sockets: starved, pairs: pairsOf("mlx4_0/0 RESET"), want: is("w1", "queued hello_unanswered mlx4_0/1")},
		{at: 60, sockets: starved, pairs: pairsOf("mlx4_0/0 RESET"), want: is("w1", "queued hello_unanswered mlx4_0/1")},
		{at: 61, sockets: []sock{{peer: "1"}}, pairs: pairsOf("mlx4_0/1 RTS"), want: is("w1", "rdma mlx4_0/1"), why: "its turn"},
	})
	fin := []sock{{peer: "1", unacked: 1, state: event.TCPFinWait1, nobody: true}}
	w := newWorld(Options{}, nil)
	w.look(&step{at: 0, sockets: []sock{{peer: "1"}}, pairs: pairsOf("mlx4_0/1 RTS")})
	for at := 1.0; at < 8; at++ {
		s := fin[0].event()
		s.Retransmits = uint64(at)
		w.judge.Reading(event.RDMA{Ports: cards(), TimeNS: seconds(at), QueuePairsNS: seconds(at)})
		w.table.Update(seconds(at), []event.TCPSocket{s}, []legs.NetnsInfo{hostNet})
	}
	if l := w.table.Legs()[0]; l.Transport != event.TransportHalfOpen {
		t.Errorf("%+v", l)
	}
}

// TestExpectations: what the operator says decides what is wrong.
func TestExpectations(t *testing.T) {
	sockets := []sock{
		{peer: "1", payload: mega, moves: true}, {peer: "2", payload: mega, moves: true},
		{peer: "3", payload: mega, moves: true, local: bridge}, {peer: "4", local: bridge, payload: mega},
	}
	w := newWorld(Options{}, map[string]string{"w1": "tcp", "w2": "rdma", "w3": "rdma"})
	w.look(&step{at: 0, sockets: sockets})
	timeline(t, w, []step{{at: 3, sockets: sockets, want: is(
		"w1", "tcp mlx4_0/1", "w2", "fallback no_queue_pair mlx4_0/1", "w3", "tcp no_gid", "w4", "tcp")}})
}

// TestFirstReading comes between two rounds, or in one: no leg takes the queue
// pair of another one that has not been heard yet.
func TestFirstReading(t *testing.T) {
	sockets := []sock{{peer: "1"}, {peer: "2", payload: mega}}
	r := event.RDMA{Ports: cards(), QueuePairs: pairsOf("mlx4_0/1 RTS"), QueuePairsNS: seconds(1)}
	for range 20 { // the order of legs is that of a map
		w := newWorld(Options{}, nil)
		list := []event.TCPSocket{sockets[0].event(), sockets[1].event()}
		for at := range 4 {
			if at == 1 {
				w.judge.Reading(r)
			}
			w.table.Update(seconds(float64(at)), list, []legs.NetnsInfo{hostNet})
		}
		for _, l := range w.table.Legs() {
			if l.Name == "w1" && l.Transport != event.TransportRDMA || l.Name == "w2" && l.Transport != event.TransportFallback {
				t.Fatalf("%s %s", l.Name, l.Transport)
			}
		}
	}
	// In the middle of a round.
	j := New(Options{})
	facts := func(s sock) legs.Facts {
		e := s.event()
		return legs.Facts{Sockets: []legs.SocketFacts{{TCPSocket: e, Settled: true, Age: time.Hour, Payload: s.payload}}}
	}
	for round := range 4 {
		now := seconds(float64(10 + round))
		one := event.Leg{Name: "w1", Local: addr(port1), Transport: event.TransportIdle, PID: engine}
		two := event.Leg{Name: "w2", Local: addr(port1), Transport: event.TransportTCP, PID: engine}
		if round%2 == 1 {
			j.Join(now, facts(sockets[1]), &two)
		}
		j.Join(now, facts(sockets[0]), &one)
		if round == 0 {
			j.Reading(r)
		}
		if round%2 == 0 {
			j.Join(now, facts(sockets[1]), &two)
		}
		if two.Transport == event.TransportRDMA || (round == 3 && (one.Transport != event.TransportRDMA || two.Transport != event.TransportFallback)) {
			t.Errorf("round %d: %s, %s", round, one.Transport, two.Transport)
		}
	}
}

// TestHub is five legs over two cards, of which two are on TCP.
func TestHub(t *testing.T) {
	sockets := []sock{
		{peer: "1"}, {peer: "2"}, {peer: "3", local: port2, payload: mega, moves: true},
		{peer: "4", local: second}, {peer: "5", local: second, payload: mega, moves: true},
	}
	pairs := pairsOf("mlx4_0/1 RTS", "mlx4_0/1 RTS", "rxe0/1 RTS")
	process := func(int) Process { return Process{Limited: true, MemlockBytes: 20 << 20, PinnedBytes: 19200 << 10} }
	w := newWorld(Options{Process: process}, nil)
	w.look(&step{at: 0, sockets: sockets, pairs: pairs})
	w.look(&step{at: 3, sockets: sockets, pairs: pairs})
	want := is("w1", "rdma mlx4_0/1", "w2", "rdma mlx4_0/1", "w3", "fallback port_not_probed mlx4_0/2",
		"w4", "rdma rxe0/1", "w5", "fallback memlock rxe0/1")
	timeline(t, w, []step{
		{at: 4, sockets: sockets, pairs: pairs, want: want},
		{at: 5, sockets: sockets, pairs: pairs, want: want},
	})
	for _, l := range w.table.Legs() {
		if l.Name == "w1" && len(l.QueuePairs) != 2 || l.Name == "w3" && (len(l.QueuePairs) != 2 || l.QueuePairs[0].Port != 1) {
			t.Errorf("%s shows %+v", l.Name, l.QueuePairs)
		}
	}
}
