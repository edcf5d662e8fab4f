package legs

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"grayfail/collector/netns"
	"grayfail/collector/sockdiag"
	"grayfail/event"
	"grayfail/internal/testkit"
)

// TestLiveLegs: from real sockets in two namespaces to legs, through every
// package in between: a leg that carries payload, an idle one, a client that
// waits behind another, seen from its own side and from the worker's, and
// their end.
func TestLiveLegs(t *testing.T) {
	c, w := testkit.Netns(t, "gf-legs-c"), testkit.Netns(t, "gf-legs-w")
	testkit.Run(t, "ip", "-n", c, "link", "add", "lc0", "type", "veth", "peer", "name", "lw0", "netns", w)
	for i, end := range [][2]string{{c, "lc0"}, {w, "lw0"}} {
		testkit.Run(t, "ip", "-n", end[0], "addr", "add", fmt.Sprintf("10.79.5.%d/24", i+1), "dev", end[1])
		testkit.Run(t, "ip", "-n", end[0], "link", "set", end[1], "up")
	}
	listen := func(port int) (l net.Listener) {
		testkit.InNetns(t, w, func() (err error) {
			l, err = net.Listen("tcp4", fmt.Sprintf("10.79.5.2:%d", port))
			return err
		})
		t.Cleanup(func() { l.Close() })
		return l
	}
	dial := func(port int) (conn net.Conn) {
		testkit.InNetns(t, c, func() (err error) {
			conn, err = net.DialTimeout("tcp4", fmt.Sprintf("10.79.5.2:%d", port), 5*time.Second)
			return err
		})
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	accept := func(l net.Listener) net.Conn {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	say := func(from, to net.Conn, size int) {
		buf := make([]byte, size)
		if _, err := from.Write(buf); err != nil {
			t.Fatal(err)
		}
		for got := 0; got < size; {
			n, err := to.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			got += n
		}
	}

	a, b, d := listen(50052), listen(50053), listen(50054)
	busy := dial(50052)
	busySide := accept(a)
	say(busy, busySide, 5000)
	say(busySide, busy, 5000)
	idle := dial(50053)
	idleSide := accept(b)
	say(idle, idleSide, 33)
	say(idleSide, idle, 36)
	queued := dial(50054)
	if _, err := queued.Write(make([]byte, 33)); err != nil {
		t.Fatal(err)
	}
	_ = d // never accepts

	set := netns.NewSet(netns.Config{Names: []string{c, w}})
	sockets := sockdiag.New(sockdiag.Options{})
	t.Cleanup(func() { sockets.Close() })
	addresses := NewAddressReader()
	cfg := Config{
		Ports:    []uint16{50052, 50053, 50054},
		Static:   []Static{{Name: "rpc-a", Peer: netip.MustParseAddrPort("10.79.5.2:50052")}},
		Settling: 200 * time.Millisecond,
	}
	table := New(cfg)
	look := func() map[string]event.Leg {
		t.Helper()
		now := time.Now().UnixNano()
		spaces, problems := set.Look(now)
		list, more, err := sockets.Collect(now, spaces, cfg.WatchedPorts())
		if err != nil || len(problems)+len(more) != 0 {
			t.Fatalf("%v %v %v", problems, more, err)
		}
		infos, problems := addresses.Read(now, set.Adopt(netns.OwnersOf(list)), sockets.Complete)
		if len(problems) != 0 {
			t.Fatal(problems)
		}
		table.Update(now, list, infos)
		legs := make(map[string]event.Leg)
		for _, l := range table.Legs() {
			legs[l.Name] = l
		}
		return legs
	}
	expect := func(want map[string]string) (legs map[string]event.Leg) {
		t.Helper()
		testkit.Eventually(t, 20*time.Second, func() error {
			legs = look()
			for name, transport := range want {
				if got := words(string(legs[name].Transport), legs[name].Reason); got != transport {
					return fmt.Errorf("%q is %q, want %q", name, got, transport)
				}
			}
			return nil
		})
		return legs
	}
	legs := expect(map[string]string{
		"rpc-a":           "tcp",
		"10.79.5.2:50053": "idle",
		"10.79.5.2:50054": "queued hello_unanswered",
		// All three of the worker's sockets are one leg: the one that waits
		// is what an operator has to know.
		"from 10.79.5.1": "queued not_accepted",
	})
	if len(legs) != 4 {
		t.Errorf("%d legs: %+v", len(legs), legs)
	}
	if l := legs["rpc-a"]; l.Netns != c || l.Device != "lc0" || l.Local.String() != "10.79.5.1" || l.BytesAcked != 5001 || l.BytesReceived != 5000 || l.PID == 0 || l.RTT == 0 || l.Connections != 1 {
		t.Errorf("%+v", l)
	}
	if l := legs["from 10.79.5.1"]; l.Netns != w || l.Device != "lw0" || l.Role != event.RoleServer || l.Peer.Port() != 0 || l.Connections != 3 {
		t.Errorf("%+v", l)
	}

	queuedSide := accept(d)
	say(queuedSide, queued, 36)
	expect(map[string]string{"10.79.5.2:50054": "idle", "from 10.79.5.1": "tcp"})

	busy.Close()
	busySide.Close()
	legs = expect(map[string]string{"rpc-a": "dead no_socket", "10.79.5.2:50053": "idle"})
	if l := legs["rpc-a"]; l.BytesAcked < 5001 || l.GoneNS == 0 || l.Connections != 0 {
		t.Errorf("%+v", l)
	}
	testkit.Run(t, "ip", "netns", "del", c)
	idle.Close()
	queued.Close()
}
