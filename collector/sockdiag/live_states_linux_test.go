package sockdiag

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"grayfail/collector/netns"
	"grayfail/event"
	"grayfail/internal/testkit"
)

// TestLiveStates: connections in every state that a dump shows for long.
func TestLiveStates(t *testing.T) {
	coordinator, worker := lab(t)
	col := New(Options{})
	l := listen(t, worker, "tcp4", "10.79.2.2:50052")

	served := dial(t, coordinator, "tcp4", "10.79.2.2:50052")
	servedSide := accept(t, l)
	turn(t, served, servedSide, 33, 36)

	halfClosed := dial(t, coordinator, "tcp4", "10.79.2.2:50052")
	halfSide := accept(t, l)
	turn(t, halfClosed, halfSide, 33, 36)
	if err := halfClosed.CloseWrite(); err != nil {
		t.Fatal(err)
	}

	ended := dial(t, coordinator, "tcp4", "10.79.2.2:50052")
	endedSide := accept(t, l)
	ended.Close()
	endedSide.Close()

	// Two more over IPv6 sockets, once as ::ffff:a.b.c.d.
	six := listen(t, worker, "tcp", "[::]:50053")
	for _, c := range []*net.TCPConn{dial(t, coordinator, "tcp6", "[fd79::2]:50053"), dialMapped(t, coordinator, "10.79.2.2:50053")} {
		turn(t, c, accept(t, six), 700, 7000)
	}

	// From here on the worker accepts nobody: a client is queued.
	queued := dial(t, coordinator, "tcp4", "10.79.2.2:50052")
	if _, err := queued.Write(make([]byte, 33)); err != nil {
		t.Fatal(err)
	}

	// A peer that does not answer.
	var lost int
	testkit.InNetns(t, coordinator.Path, func() (err error) {
		if lost, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		err = unix.Connect(lost, &unix.SockaddrInet4{Port: 50052, Addr: [4]byte{10, 79, 2, 99}})
		if errors.Is(err, unix.EINPROGRESS) {
			return nil
		}
		return err
	})
	t.Cleanup(func() { unix.Close(lost) })

	var list []event.TCPSocket
	type key struct {
		role  event.Role
		state event.TCPState
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		list = collect(t, col, []netns.Namespace{coordinator, worker}, 50052, 50053)
		got := make(map[key]int)
		for _, s := range list {
			got[key{s.Flow.Role, s.State}]++
			if s.State == event.TCPEstablished && s.UnackedSegments > 0 {
				return errors.New("not at rest")
			}
		}
		want := map[key]int{
			{event.RoleClient, event.TCPEstablished}: 4, {event.RoleServer, event.TCPEstablished}: 4,
			{event.RoleClient, event.TCPFinWait2}: 1, {event.RoleServer, event.TCPCloseWait}: 1,
			{event.RoleClient, event.TCPTimeWait}: 1, {event.RoleClient, event.TCPSynSent}: 1,
		}
		for k, n := range want {
			if got[k] != n {
				return fmt.Errorf("%d %v sockets in state %d, want %d: %v", got[k], k.role, k.state, n, got)
			}
		}
		return nil
	})
	waiting, _ := raw(t, queued)
	for _, s := range list {
		switch {
		case s.State == event.TCPTimeWait:
			if s.HasInfo || s.Flow.PID != 0 || s.Flow.Peer.String() != "10.79.2.2:50052" {
				t.Errorf("TIME-WAIT: %+v", s)
			}
		case s.State == event.TCPSynSent:
			if !s.HasInfo || s.Flow.Peer.String() != "10.79.2.99:50052" || s.Flow.PID != os.Getpid() {
				t.Errorf("SYN-SENT: %+v", s)
			}
		case s.Flow.Socket == waiting:
			if s.BytesAcked != 34 || s.BytesReceived != 0 {
				t.Errorf("the queued client: %+v", s)
			}
		case s.Flow.Role == event.RoleServer && s.State == event.TCPEstablished && s.Inode == 0:
			if s.ReceiveQueueBytes != 33 || s.Flow.PID != 0 {
				t.Errorf("the connection nobody accepted: %+v", s)
			}
		}
	}
	if *update {
		for _, side := range []struct {
			ns   netns.Namespace
			name string
		}{{coordinator, "coordinator"}, {worker, "worker"}} {
			capture(t, side.ns, side.name)
		}
	}
}
