package sockdiag

import (
	"syscall"
	"testing"

	"grayfail/collector/netns"
	"grayfail/event"
)

// TestLiveRoles: a watched local port makes a server, unless the connection
// only happened to get that port.
func TestLiveRoles(t *testing.T) {
	coordinator, worker := lab(t)
	col := New(Options{})
	nss := []netns.Namespace{coordinator, worker}
	l := listen(t, worker, "tcp4", "10.79.2.2:50052")
	web := listen(t, worker, "tcp4", "10.79.2.2:9999")

	// An outgoing connection of the coordinator to nothing of interest, and
	// one to the worker, both from port 50053, which is watched too.
	byChance := bound(t, coordinator, "10.79.2.1:50053", "10.79.2.2:9999")
	toWorker := bound(t, coordinator, "10.79.2.1:50054", "10.79.2.2:50052")
	accepted := accept(t, l)
	webSide := accept(t, web)
	turn(t, byChance, webSide, 10, 10)
	turn(t, toWorker, accepted, 10, 10)

	// A server that stops listening after its first client still is one.
	once := listen(t, worker, "tcp4", "10.79.2.2:50055")
	toOnce := dial(t, coordinator, "tcp4", "10.79.2.2:50055")
	onceSide := accept(t, once)
	once.Close()
	turn(t, toOnce, onceSide, 10, 10)

	list := collect(t, col, nss, 50052, 50053, 50054, 50055)
	for _, want := range []struct {
		name string
		conn syscall.Conn
		role event.Role
		ours bool
	}{
		{"a client with a watched ephemeral port, to a port nobody watches", byChance, 0, false},
		{"the other end of it: the peer's port is watched", webSide, event.RoleClient, true},
		{"a client between two watched ports", toWorker, event.RoleClient, true},
		{"the server between two watched ports", accepted, event.RoleServer, true},
		{"a server that no longer listens", onceSide, event.RoleServer, true},
	} {
		cookie, _ := raw(t, want.conn)
		found := byCookie(list, cookie)
		if (len(found) == 1) != want.ours {
			t.Errorf("%s: listed %d times", want.name, len(found))
		} else if want.ours && found[0].Flow.Role != want.role {
			t.Errorf("%s: role %v, want %v", want.name, found[0].Flow.Role, want.role)
		}
	}
	for _, s := range list {
		if s.State == event.TCPListen {
			t.Errorf("a listener is listed: %+v", s)
		}
	}
}
