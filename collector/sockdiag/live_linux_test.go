package sockdiag

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"grayfail/collector/netns"
	"grayfail/event"
	"grayfail/internal/testkit"
)

var update = flag.Bool("update", false, "write the dumps of this kernel to testdata")

// fixtures is named by the kernel and the driver of the devices.
const fixtures = "testdata/6.18-veth"

// lab makes two namespaces, coordinator and worker, joined by a veth pair.
func lab(t testing.TB) (coordinator, worker netns.Namespace) {
	t.Helper()
	c, w := testkit.Netns(t, "gf-sockdiag-c"), testkit.Netns(t, "gf-sockdiag-w")
	testkit.Run(t, "ip", "-n", c, "link", "add", "sc0", "type", "veth", "peer", "name", "sw0", "netns", w)
	for i, end := range [][2]string{{c, "sc0"}, {w, "sw0"}} {
		testkit.Run(t, "ip", "-n", end[0], "addr", "add", fmt.Sprintf("10.79.2.%d/24", i+1), "dev", end[1])
		testkit.Run(t, "ip", "-n", end[0], "addr", "add", fmt.Sprintf("fd79::%d/64", i+1), "dev", end[1], "nodad")
		testkit.Run(t, "ip", "-n", end[0], "link", "set", end[1], "up")
	}
	coordinator, err := netns.ByName(c)
	if err != nil {
		t.Fatal(err)
	}
	worker, err = netns.ByName(w)
	if err != nil {
		t.Fatal(err)
	}
	return coordinator, worker
}

// listen listens inside a namespace.
func listen(t testing.TB, ns netns.Namespace, network, addr string) (l net.Listener) {
	t.Helper()
	testkit.InNetns(t, ns.Path, func() (err error) {
		l, err = net.Listen(network, addr)
		return err
	})
	t.Cleanup(func() { l.Close() })
	return l
}

// dial connects inside a namespace.
func dial(t testing.TB, ns netns.Namespace, network, addr string) (c *net.TCPConn) {
	t.Helper()
	testkit.InNetns(t, ns.Path, func() error {
		conn, err := net.DialTimeout(network, addr, 5*time.Second)
		if err == nil {
			c = conn.(*net.TCPConn)
		}
		return err
	})
	t.Cleanup(func() { c.Close() })
	return c
}

// accept takes the next connection, and keeps it open until the test ends.
func accept(t testing.TB, l net.Listener) *net.TCPConn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// turn sends request bytes on one side and answers with reply bytes.
func turn(t testing.TB, client, server net.Conn, request, reply int) {
	t.Helper()
	for _, step := range []struct {
		from, to net.Conn
		size     int
	}{{client, server, request}, {server, client, reply}} {
		buf := make([]byte, step.size)
		if _, err := step.from.Write(buf); err != nil {
			t.Fatal(err)
		}
		for got := 0; got < step.size; {
			n, err := step.to.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			got += n
		}
	}
}

// raw is what the kernel tells the owner of a socket: the reading that ours is
// compared with.
func raw(t testing.TB, c syscall.Conn) (cookie uint64, info *unix.TCPInfo) {
	t.Helper()
	rc, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var errs [2]error
	err = rc.Control(func(fd uintptr) {
		cookie, errs[0] = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_COOKIE)
		info, errs[1] = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if err := errors.Join(err, errs[0], errs[1]); err != nil {
		t.Fatal(err)
	}
	return cookie, info
}

func byCookie(list []event.TCPSocket, cookie uint64) (found []event.TCPSocket) {
	for _, s := range list {
		if s.Flow.Socket == cookie {
			found = append(found, s)
		}
	}
	return found
}

func collect(t testing.TB, c *Collector, nss []netns.Namespace, ports ...uint16) []event.TCPSocket {
	t.Helper()
	list, problems, err := c.Collect(4711, nss, ports)
	if err != nil || len(problems) != 0 {
		t.Fatalf("Collect: %v, %v", problems, err)
	}
	return list
}

// TestLiveSockets: real sockets between two namespaces, over IPv4, IPv6 and
// IPv4 inside an IPv6 socket, against what their owner can read.
func TestLiveSockets(t *testing.T) {
	coordinator, worker := lab(t)
	col := New(Options{})
	t.Cleanup(func() { col.Close() })
	nss := []netns.Namespace{coordinator, worker}

	l := listen(t, worker, "tcp", "[::]:50052") // takes IPv4 as ::ffff:a.b.c.d
	other := listen(t, worker, "tcp4", "10.79.2.2:9999")
	dial(t, coordinator, "tcp4", other.Addr().String())
	for _, tt := range []struct {
		name, network, addr string
		local, peer         string
	}{
		{"IPv4", "tcp4", "10.79.2.2:50052", "10.79.2.1", "10.79.2.2"},
		{"IPv6", "tcp6", "[fd79::2]:50052", "fd79::1", "fd79::2"},
		{"IPv4 mapped on the client's side", "mapped", "10.79.2.2:50052", "10.79.2.1", "10.79.2.2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var client *net.TCPConn
			if tt.network == "mapped" {
				client = dialMapped(t, coordinator, tt.addr)
			} else {
				client = dial(t, coordinator, tt.network, tt.addr)
			}
			accepted := accept(t, l)
			turn(t, client, accepted, 5000, 300)

			for _, side := range []struct {
				conn        syscall.Conn
				ns          netns.Namespace
				role        event.Role
				local, peer string
				port        uint16 // of the peer, 0 is ephemeral
			}{
				{client, coordinator, event.RoleClient, tt.local, tt.peer, 50052},
				{accepted, worker, event.RoleServer, tt.peer, tt.local, 0},
			} {
				cookie, _ := raw(t, side.conn)
				var s event.TCPSocket
				var info *unix.TCPInfo
				testkit.Eventually(t, 10*time.Second, func() error {
					found := byCookie(collect(t, col, nss, 50052), cookie)
					if len(found) != 1 {
						return fmt.Errorf("%d sockets with cookie %d", len(found), cookie)
					}
					s = found[0]
					if s.UnackedSegments != 0 {
						return errors.New("not at rest")
					}
					_, info = raw(t, side.conn)
					return nil
				})
				f := s.Flow
				if f.NetnsInode != side.ns.Inode || f.Role != side.role || f.Local.Addr() != netip.MustParseAddr(side.local) || f.Peer.Addr() != netip.MustParseAddr(side.peer) {
					t.Errorf("flow %+v", f)
				}
				if side.port != 0 && f.Peer.Port() != side.port {
					t.Errorf("peer port %d", f.Peer.Port())
				}
				if f.PID != os.Getpid() || f.Comm != netns.Comm("/proc", os.Getpid()) || f.Comm == "" {
					t.Errorf("owner %d %q, want %d", f.PID, f.Comm, os.Getpid())
				}
				if s.TimeNS != 4711 || s.State != event.TCPEstablished || !s.HasInfo || s.Inode == 0 {
					t.Errorf("socket %+v", s)
				}
				want := event.TCPSocket{
					RTT: time.Duration(info.Rtt) * time.Microsecond, MinRTT: time.Duration(info.Min_rtt) * time.Microsecond,
					BytesAcked: info.Bytes_acked, BytesReceived: info.Bytes_received,
					OutOfOrder: uint64(info.Rcv_ooopack), Retransmits: uint64(info.Total_retrans), DSACKs: uint64(info.Dsack_dups),
				}
				got := event.TCPSocket{
					RTT: s.RTT, MinRTT: s.MinRTT, BytesAcked: s.BytesAcked, BytesReceived: s.BytesReceived,
					OutOfOrder: s.OutOfOrder, Retransmits: s.Retransmits, DSACKs: s.DSACKs,
				}
				if got != want {
					t.Errorf("numbers\n got %+v\nwant %+v", got, want)
				}
				sent, received := uint64(5001), uint64(300) // the SYN counts as one
				if side.role == event.RoleServer {
					sent, received = 300, 5000
				}
				if s.BytesAcked != sent || s.BytesReceived != received || s.RTT == 0 {
					t.Errorf("acked %d received %d RTT %v", s.BytesAcked, s.BytesReceived, s.RTT)
				}
				if later := time.Duration(info.Last_data_sent) * time.Millisecond; s.SinceSend > later || s.SinceSend < 0 {
					t.Errorf("SinceSend %v, the kernel said %v a moment later", s.SinceSend, later)
				}
			}
		})
	}
	for _, s := range collect(t, col, nss, 50052) {
		if s.Flow.Peer.Port() == 9999 || s.Flow.Local.Port() == 9999 {
			t.Errorf("port 9999 is not watched: %+v", s)
		}
	}
	for _, ns := range nss {
		if !col.Complete(ns.Inode) {
			t.Errorf("%v was read and is not complete", ns)
		}
	}
	if col.Complete(1) {
		t.Error("a namespace never read is complete")
	}
}

// dialMapped connects an IPv6 socket to ::ffff:a.b.c.d.
func dialMapped(t testing.TB, ns netns.Namespace, addr string) *net.TCPConn {
	t.Helper()
	ap := netip.MustParseAddrPort(addr)
	var conn *net.TCPConn
	testkit.InNetns(t, ns.Path, func() error {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), "mapped")
		defer f.Close()
		if err := unix.Connect(fd, &unix.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}); err != nil {
			return err
		}
		c, err := net.FileConn(f)
		if err == nil {
			conn = c.(*net.TCPConn)
		}
		return err
	})
	t.Cleanup(func() { conn.Close() })
	return conn
}

// bound connects from a chosen local port.
func bound(t testing.TB, ns netns.Namespace, local, addr string) (c *net.TCPConn) {
	t.Helper()
	testkit.InNetns(t, ns.Path, func() error {
		d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(local)), Timeout: 5 * time.Second}
		conn, err := d.Dial("tcp4", addr)
		if err == nil {
			c = conn.(*net.TCPConn)
		}
		return err
	})
	t.Cleanup(func() { c.Close() })
	return c
}

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

func capture(t *testing.T, ns netns.Namespace, name string) {
	for family, suffix := range map[uint8]string{unix.AF_INET: "-inet.bin", unix.AF_INET6: "-inet6.bin"} {
		req := newRequest([]uint16{50052, 50053}).data
		req[0] = family
		testkit.InNetns(t, ns.Path, func() error {
			dump, err := testkit.CaptureDump(unix.NETLINK_SOCK_DIAG, unix.SOCK_DIAG_BY_FAMILY, req)
			if err == nil {
				testkit.WriteFile(t, filepath.Join(fixtures, name+suffix), dump)
			}
			return err
		})
	}
}

// TestLiveOtherProcess: a process in a namespace without a name, found in auto
// mode; its connection, its pid and its name.
func TestLiveOtherProcess(t *testing.T) {
	testkit.RequireRoot(t)
	box := testkit.Start(t, "unshare", "-n", "sleep", "600")
	testkit.Eventually(t, 10*time.Second, func() error {
		if comm := netns.Comm("/proc", box.PID()); comm != "sleep" {
			return fmt.Errorf("still %q", comm)
		}
		return nil
	})
	path := fmt.Sprintf("/proc/%d/ns/net", box.PID())
	testkit.Run(t, "nsenter", "--net="+path, "ip", "link", "set", "lo", "up")
	ns, err := netns.ByPID(box.PID())
	if err != nil {
		t.Fatal(err)
	}
	listen(t, ns, "tcp4", "127.0.0.1:50052")
	client := testkit.Start(t, "nsenter", "--net="+path, "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/50052; exec tail -f /dev/null")

	set := netns.NewSet(netns.Config{Auto: true})
	col := New(Options{})
	now := int64(0)
	testkit.Eventually(t, 20*time.Second, func() error {
		now += int64(10 * time.Second) // every look is due for a walk
		look, problems := set.Look(now)
		if len(problems) != 0 {
			return fmt.Errorf("%v", problems)
		}
		list, problems, err := col.Collect(now, look, []uint16{50052})
		if err != nil || len(problems) != 0 {
			return fmt.Errorf("%v, %v", problems, err)
		}
		for _, s := range list {
			if s.Flow.NetnsInode != ns.Inode || s.Flow.Role != event.RoleClient {
				continue
			}
			if s.Flow.PID != client.PID() || s.Flow.Comm != "tail" {
				return fmt.Errorf("owner %d %q, want %d \"tail\"", s.Flow.PID, s.Flow.Comm, client.PID())
			}
			for _, watched := range set.Adopt(netns.OwnersOf(list)) {
				if watched.Inode == ns.Inode {
					if watched.Name == "" {
						t.Errorf("adopted without a name: %+v", watched)
					}
					return nil
				}
			}
			return errors.New("not adopted")
		}
		return errors.New("the socket was not found")
	})
}

// TestLiveWithoutPermission: sockets are read without any capability; that
// their owners are not known is said.
func TestLiveWithoutPermission(t *testing.T) {
	own, err := netns.Own()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	client := testkit.Start(t, "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d; exec tail -f /dev/null", port))
	var (
		list     []event.TCPSocket
		problems []event.Problem
	)
	testkit.Eventually(t, 10*time.Second, func() error {
		if comm := netns.Comm("/proc", client.PID()); comm != "tail" {
			return fmt.Errorf("still %q", comm)
		}
		return nil
	})
	testkit.AsNobody(t, func() {
		c := New(Options{})
		defer c.Close()
		list, problems, err = c.Collect(1, []netns.Namespace{own}, []uint16{uint16(port)})
	})
	if err != nil {
		t.Fatal(err)
	}
	clients := 0
	for _, s := range list {
		if s.Flow.Role == event.RoleClient {
			clients++
			if !s.HasInfo || s.BytesAcked != 1 || s.Flow.PID != 0 {
				t.Errorf("socket %+v", s)
			}
		}
	}
	if clients != 1 {
		t.Errorf("%d client sockets, want 1", clients)
	}
	if len(problems) != 1 || problems[0].Reason != netns.ReasonNoPermission || !strings.Contains(problems[0].Detail, "CAP_SYS_PTRACE") || !strings.Contains(problems[0].Detail, "1 of 1 sockets") {
		t.Errorf("problems = %v", problems)
	}
}
