package sockdiag

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"grayfail/collector/netns"
	"grayfail/event"
	"grayfail/internal/testkit"
)

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
			return fmt.Errorf("%v, %w", problems, err)
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
