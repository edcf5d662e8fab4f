package sockdiag

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
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
