package ebpf

import (
	"errors"
	"slices"
	"testing"

	"grayfail/event"
)

// turn is one small exchange and the send that ends it.
func turn(client, server *end) {
	client.send(100)
	server.receive(100)
	server.send(200)
	client.receive(200)
	client.send(1)
	server.receive(1)
}

// TestUnwatched: nothing is kept of other ports and other namespaces.
func TestUnwatched(t *testing.T) {
	l := newLab(t)
	for name, opts := range map[string]Options{
		"port":      {Ports: []uint16{labPort + 1}, Namespaces: []uint32{l.clientInode, l.serverInode}},
		"namespace": {Ports: []uint16{labPort}, Namespaces: []uint32{1}},
		"nothing":   {},
	} {
		t.Run(name, func(t *testing.T) {
			forEachHook(t, func(t *testing.T, hook string) {
				opts.sendHook = hook
				p := load(t, opts)
				client, server := l.dial(t, families[0], labPort)
				turn(client, server)
				none(t, openNow(t, p))
				client.close()
				server.close()
				none(t, drain(t, p))
				if n, err := p.Sockets(); n != 0 || err != nil {
					t.Errorf("%d sockets tracked, error %v", n, err)
				}
			})
		})
	}
}

// TestServerSide: the accepting side is never clocked, its connections count.
func TestServerSide(t *testing.T) {
	l := newLab(t)
	for _, fam := range families {
		t.Run(fam.name, func(t *testing.T) {
			p := load(t, Options{Ports: []uint16{labPort}, Namespaces: []uint32{l.serverInode}})
			client, server := l.dial(t, fam, labPort)
			turn(client, server)
			turn(client, server)
			none(t, openNow(t, p))
			port := portOf(t, client.fd)
			client.reset() // so that the server's end closes at once
			events := drain(t, p)
			if len(events.Exchanges) != 0 || len(events.Connections) != 1 {
				t.Fatalf("want one connection and no exchange: %+v", events)
			}
			c := events.Connections[0]
			if c.Flow.Role != event.RoleServer || c.Flow.NetnsInode != l.serverInode || !c.Established ||
				c.Flow.Local.Port() != labPort || c.Flow.Peer.Port() != port ||
				c.Flow.Local.Addr().String() != fam.peer || c.Flow.Peer.Addr().String() != fam.local {
				t.Errorf("connection %+v", c)
			}
		})
	}
}

// TestEphemeralPort: an accepted connection whose peer port is a watched
// number by chance is neither a client leg nor a server leg.
func TestEphemeralPort(t *testing.T) {
	l := newLab(t)
	p := load(t, Options{Ports: []uint16{labPort}, Namespaces: []uint32{l.serverInode}})
	client, server := l.dialFrom(t, families[0], labPort, labPort+7)
	turn(server, client) // the accepting side asks: it must not be clocked
	none(t, openNow(t, p))
	turn(server, client) // nor after a look at the table
	none(t, openNow(t, p))
	client.reset()
	none(t, drain(t, p))
	if n, _ := p.Sockets(); n != 0 {
		t.Errorf("%d sockets are left in the table", n)
	}
}

// TestWatch changes the list under a running connection.
func TestWatch(t *testing.T) {
	l := newLab(t)
	p := load(t, Options{Ports: []uint16{labPort}})
	client, server := l.dial(t, families[0], labPort)
	watch := func(ports []uint16, namespaces ...uint32) {
		t.Helper()
		if err := p.Watch(ports, namespaces); err != nil {
			t.Fatal(err)
		}
	}
	turn(client, server)
	none(t, openNow(t, p))

	// The connection is older than the watch: its exchanges count from here.
	watch([]uint16{labPort, labPort, 1}, l.clientInode)
	turn(client, server)
	if e := one(t, drain(t, p)); e.RequestBytes != 100 || e.ReplyBytes != 200 {
		t.Errorf("exchange %+v", e)
	}
	one(t, openNow(t, p))

	watch([]uint16{1}, l.clientInode)
	turn(client, server)
	none(t, drain(t, p))
	if e := one(t, openNow(t, p)); e.Open { // what was under way is reported once more, as ended
		t.Errorf("not watched and still open: %+v", e)
	}
	none(t, openNow(t, p))
	if n, _ := p.Sockets(); n != 0 || p.Losses().Evicted != 1 || p.Lost() != 0 {
		t.Errorf("%d sockets, %+v", n, p.Losses())
	}

	// It was there before the watch began again: no life span is known.
	watch([]uint16{labPort}, l.clientInode)
	turn(client, server)
	client.reset()
	if e := drain(t, p); len(e.Connections) != 0 || len(e.Exchanges) != 2 {
		t.Errorf("events %+v", e)
	}
}

func TestWatchLimits(t *testing.T) {
	p := load(t, Options{Ports: []uint16{1}, Namespaces: []uint32{1}})
	namespaces := make([]uint32, MaxNamespaces+1)
	for i := range namespaces {
		namespaces[i] = uint32(i + 1)
	}
	var limit *LimitError
	if err := p.Watch(nil, namespaces); !errors.As(err, &limit) || limit.Max != MaxNamespaces {
		t.Errorf("one namespace too many: %v", err)
	}
	// A full table is exchanged for another full one.
	for range 2 {
		if err := p.Watch(nil, namespaces[1:]); err != nil {
			t.Error(err)
		}
		if err := p.Watch(nil, namespaces[:MaxNamespaces]); err != nil {
			t.Error(err)
		}
	}
	q, problems := Load(Options{Namespaces: namespaces})
	t.Cleanup(func() { _ = q.Close() })
	if len(problems) != 1 || problems[0].Reason != ReasonBadOptions || !q.Available() {
		t.Errorf("problems %+v, available %t", problems, q.Available())
	}
}

// TestPortBits: every port is its own bit, and what goes leaves the others.
func TestPortBits(t *testing.T) {
	p := load(t, Options{})
	for _, ports := range [][]uint16{{0, 63, 64, 50052, 65535}, {63, 50052, 50053}, {}} {
		if err := p.Watch(ports, nil); err != nil {
			t.Fatal(err)
		}
		var got []uint16
		for word := range uint32(1024) {
			var bits uint64
			if err := p.maps[probesMapPorts].Lookup(word, &bits); err != nil {
				t.Fatal(err)
			}
			for bit := range uint32(64) {
				if bits>>bit&1 != 0 {
					got = append(got, uint16(word*64+bit))
				}
			}
		}
		if !slices.Equal(got, ports) {
			t.Errorf("ports %v, want %v", got, ports)
		}
	}
}
