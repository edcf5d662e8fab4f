package ebpf

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"grayfail/event"
)

// lossy drops one packet in 20, two in a row: tails and retransmits are lost
// too, but a retransmit at most once. Losses by chance have let the RTO back
// off past every time limit.
const lossy = "numgen inc mod 40 < 2"

// TestLoss drops segments in both directions and holds the events
// against the kernel's own counters, namespace by namespace. The relation: an
// event is one skb, RetransSegs counts the segments in it, so there are never
// more events than segments, and where there are segments there are events.
func TestLoss(t *testing.T) {
	l := newLab(t)
	p := load(t, Options{Ports: []uint16{labPort}, Namespaces: []uint32{l.clientInode, l.serverInode}})
	client, server := l.dial(t, families[0], labPort)
	names := map[uint32]string{l.clientInode: clientNetns, l.serverInode: serverNetns}
	before := map[string]int{}
	for _, ns := range names {
		before[ns] = counter(t, ns, "Tcp", "RetransSegs")
	}
	stopReplies := drop(t, clientNetns, lossy)
	stopRequests := drop(t, serverNetns, lossy)

	const turns, limit = 25, 400
	var events Events
	for n := 0; n < turns || n < limit && !witnessed(events); n++ {
		carry(t, client, server, 40_000)
		carry(t, server, client, 130_000)
		if err := p.Drain(&events); err != nil {
			t.Fatal(err)
		}
	}
	for ns, n := range map[string]int{clientNetns: dropped(t, clientNetns), serverNetns: dropped(t, serverNetns)} {
		if n == 0 {
			t.Fatalf("the drop rule in %s did not act", ns)
		}
	}
	stopReplies()
	stopRequests()
	turn(client, server)
	after := map[string]int{}
	for _, ns := range names {
		after[ns] = counter(t, ns, "Tcp", "RetransSegs")
	}
	if err := p.Drain(&events); err != nil {
		t.Fatal(err)
	}

	seen := map[string]int{}
	kinds := map[event.RetransmitKind]int{}
	for _, r := range events.Retransmits {
		seen[names[r.Flow.NetnsInode]]++
		kinds[r.Kind]++
		side, role := event.SideCoordinator, event.RoleClient
		if r.Flow.NetnsInode == l.serverInode {
			side, role = event.SideWorker, event.RoleServer
		}
		if r.Side != side || r.Flow.Role != role || r.Flow.Socket == 0 {
			t.Errorf("retransmit %+v, want side %s", r, side)
		}
	}
	for _, ns := range names {
		segments := after[ns] - before[ns]
		t.Logf("%s: %d events, %d segments", ns, seen[ns], segments)
		if seen[ns] == 0 || seen[ns] > segments {
			t.Errorf("%s: %d events for %d retransmitted segments", ns, seen[ns], segments)
		}
	}
	if kinds[event.RetransmitSYN]+kinds[event.RetransmitSYNACK] != 0 {
		t.Errorf("kinds %v on an established connection", kinds)
	}
	t.Logf("kinds %v", kinds)

	// The witnesses that the client's side alone has.
	var exchanges, outOfOrder, stalled, retransmits int
	for _, e := range events.Exchanges {
		if e.RequestBytes != 40_000 {
			continue
		}
		exchanges++
		if e.ReplyBytes != 130_000 {
			t.Errorf("reply of %d bytes: lost segments must count once", e.ReplyBytes)
		}
		retransmits += int(e.Retransmits)
		if e.OutOfOrder > 0 {
			outOfOrder++
			if e.Stall > 0 {
				stalled++
			}
		}
	}
	t.Logf("%d exchanges, %d with segments out of order, %d segments sent again", exchanges, outOfOrder, retransmits)
	if exchanges == 0 || outOfOrder == 0 || stalled != outOfOrder {
		t.Errorf("%d exchanges, %d out of order, %d of those with a gap", exchanges, outOfOrder, stalled)
	}
	if sum := after[clientNetns] - before[clientNetns]; retransmits == 0 || retransmits > sum {
		t.Errorf("exchanges count %d segments sent again, the kernel %d", retransmits, sum)
	}
	if p.Lost() != 0 {
		t.Errorf("lost %+v", p.Losses())
	}
}

// witnessed: the drops have hit what the test looks for.
func witnessed(e Events) bool {
	return slices.ContainsFunc(e.Exchanges, func(x event.Exchange) bool { return x.OutOfOrder > 0 }) &&
		slices.ContainsFunc(e.Exchanges, func(x event.Exchange) bool { return x.Retransmits > 0 })
}

// TestHandshake: a SYN and a SYN-ACK that nobody answers, and a refusal.
func TestHandshake(t *testing.T) {
	l := newLab(t)
	for _, fam := range families {
		t.Run(fam.name, func(t *testing.T) { testHandshake(t, l, fam) })
	}
}

func testHandshake(t *testing.T, l *lab, fam family) {
	p := load(t, Options{Ports: []uint16{labPort}, Namespaces: []uint32{l.clientInode, l.serverInode}})
	listener := l.listen(t, fam.domain, labPort)
	connect := func() *end {
		client := &end{t: t}
		within(t, clientNetns, func() (err error) {
			if client.fd, err = newSocket(fam.domain); err != nil {
				return err
			}
			if err := unix.SetNonblock(client.fd, true); err != nil {
				return err
			}
			err = unix.Connect(client.fd, sockaddr(fam.domain, fam.server, labPort))
			if errors.Is(err, unix.EINPROGRESS) {
				return nil
			}
			return err
		})
		t.Cleanup(client.close)
		return client
	}
	var events Events
	wait := func(kind event.RetransmitKind) event.Retransmit {
		t.Helper()
		var found event.Retransmit
		eventually(t, "a retransmit of kind "+string(kind), func() bool {
			events.Reset()
			if err := p.Drain(&events); err != nil {
				t.Fatal(err)
			}
			for _, r := range events.Retransmits {
				if r.Kind == kind {
					found = r
					return true
				}
			}
			return false
		})
		return found
	}

	// The SYN is lost: repeated after a second (RFC 6298).
	stop := drop(t, serverNetns, "tcp dport 50052")
	client := connect()
	r := wait(event.RetransmitSYN)
	if r.Side != event.SideCoordinator || r.Flow.Peer.String() != hostPort(fam.peer, labPort) ||
		r.Flow.Local.String() != hostPort(fam.local, int(portOf(t, client.fd))) || r.Flow.NetnsInode != l.clientInode || r.Flow.Comm != ownComm(t) {
		t.Errorf("SYN sent again: %+v", r)
	}
	port := portOf(t, client.fd)
	client.close()
	events.Reset()
	if err := p.Drain(&events); err != nil {
		t.Fatal(err)
	}
	if len(events.Connections) != 1 || events.Connections[0].Established || events.Connections[0].Flow.Local.Port() != port ||
		events.Connections[0].EndNS <= events.Connections[0].StartNS {
		t.Errorf("unanswered connection: %+v", events.Connections)
	}
	stop()

	// The SYN-ACK is lost.
	stop = drop(t, clientNetns, "tcp sport 50052")
	client = connect()
	r = wait(event.RetransmitSYNACK)
	if r.Side != event.SideWorker || r.Flow.Local.String() != hostPort(fam.peer, labPort) ||
		r.Flow.Peer.String() != hostPort(fam.local, int(portOf(t, client.fd))) || r.Flow.NetnsInode != l.serverInode {
		t.Errorf("SYN-ACK sent again: %+v", r)
	}
	client.close()
	stop()

	// Refused.
	_ = unix.Close(listener)
	drain(t, p)
	connect()
	events.Reset()
	eventually(t, "the refused connection", func() bool {
		if err := p.Drain(&events); err != nil {
			t.Fatal(err)
		}
		return len(events.Connections) > 0
	})
	c := events.Connections[0]
	if c.Established || c.Flow.Peer.String() != hostPort(fam.peer, labPort) || c.Flow.Role != event.RoleClient || c.Flow.PID == 0 {
		t.Errorf("refused connection: %+v", c)
	}
	if n, _ := p.Sockets(); n != 0 {
		t.Errorf("%d sockets are left in the table", n)
	}
}
