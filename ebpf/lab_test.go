package ebpf

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"grayfail/internal/testkit"
)

// The lab: two network namespaces and a veth pair between them. One test
// drives both ends in turn, so that every exchange has a known shape.
const (
	clientNetns = "gf-ebpf-client"
	serverNetns = "gf-ebpf-server"
	labPort     = 50052
)

type lab struct {
	clientInode, serverInode uint32
	clientBuffer             int // SO_RCVBUF of the next clients; 0 is the kernel's choice
}

func newLab(t testing.TB) *lab {
	t.Helper()
	testkit.RequireRoot(t)
	lockLab(t)
	testkit.Netns(t, clientNetns)
	testkit.Netns(t, serverNetns)
	testkit.Run(t, "ip", "-n", clientNetns, "link", "add", "gfe0", "type", "veth", "peer", "name", "gfe0", "netns", serverNetns)
	for i, ns := range []string{clientNetns, serverNetns} {
		testkit.Run(t, "ip", "-n", ns, "address", "add", fmt.Sprintf("10.99.0.%d/24", i+1), "dev", "gfe0")
		testkit.Run(t, "ip", "-n", ns, "address", "add", fmt.Sprintf("fd99::%d/64", i+1), "dev", "gfe0", "nodad")
		testkit.Run(t, "ip", "-n", ns, "link", "set", "gfe0", "up")
	}
	return &lab{clientInode: netnsInode(t, clientNetns), serverInode: netnsInode(t, serverNetns)}
}

// lockLab keeps two runs of these tests from taking each other's namespaces.
func lockLab(t testing.TB) {
	t.Helper()
	f, err := os.Create("/run/lock/gf-ebpf-lab")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // first registered, so run last
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

func netnsInode(t testing.TB, name string) uint32 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat("/run/netns/"+name, &st); err != nil {
		t.Fatal(err)
	}
	return uint32(st.Ino)
}

// within runs f on a thread in the namespace; the thread is thrown away.
func within(t testing.TB, netns string, f func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		ns, err := os.Open("/run/netns/" + netns)
		if err != nil {
			done <- err
			return
		}
		defer ns.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	if err := <-done; err != nil {
		t.Fatalf("in %s: %v", netns, err)
	}
}

// family is how a connection is addressed.
type family struct {
	name   string
	domain int
	server string // as the client connects
	peer   string // as events show it
	local  string
}

var families = []family{
	{"ipv4", unix.AF_INET, "10.99.0.2", "10.99.0.2", "10.99.0.1"},
	{"ipv6", unix.AF_INET6, "fd99::2", "fd99::2", "fd99::1"},
	{"v4-mapped", unix.AF_INET6, "::ffff:10.99.0.2", "10.99.0.2", "10.99.0.1"},
}

func sockaddr(domain int, addr string, port int) unix.Sockaddr {
	ip := netip.MustParseAddr(addr)
	if domain == unix.AF_INET {
		return &unix.SockaddrInet4{Addr: ip.As4(), Port: port}
	}
	return &unix.SockaddrInet6{Addr: ip.As16(), Port: port}
}

func portOf(t testing.TB, fd int) uint16 {
	t.Helper()
	sa, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return uint16(sa.Port)
	case *unix.SockaddrInet6:
		return uint16(sa.Port)
	}
	t.Fatalf("socket name %T", sa)
	return 0
}

// end is one end of a connection: blocking, with a timeout that turns a hang
// into a failure.
type end struct {
	t  testing.TB
	fd int
}

func newSocket(domain int) (int, error) {
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	limit := unix.Timeval{Sec: 60}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return -1, err
	}
	return fd, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit)
}

// listen opens a listener in the server's namespace.
func (l *lab) listen(t testing.TB, domain, port int) (fd int) {
	t.Helper()
	any := map[int]string{unix.AF_INET: "0.0.0.0", unix.AF_INET6: "::"}[domain]
	within(t, serverNetns, func() (err error) {
		if fd, err = newSocket(domain); err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return err
		}
		if err := unix.Bind(fd, sockaddr(domain, any, port)); err != nil {
			return err
		}
		return unix.Listen(fd, 16)
	})
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// dial opens a connection from the client's namespace and accepts it.
func (l *lab) dial(t testing.TB, fam family, port int) (client, server *end) {
	t.Helper()
	return l.dialFrom(t, fam, 0, port)
}

// dialFrom is dial from a chosen port; 0 lets the kernel choose.
func (l *lab) dialFrom(t testing.TB, fam family, from, port int) (client, server *end) {
	t.Helper()
	listener := l.listen(t, fam.domain, port)
	defer unix.Close(listener)
	client, server = &end{t: t}, &end{t: t}
	within(t, clientNetns, func() (err error) {
		if client.fd, err = newSocket(fam.domain); err != nil {
			return err
		}
		if l.clientBuffer != 0 {
			if err := unix.SetsockoptInt(client.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, l.clientBuffer); err != nil {
				return err
			}
		}
		if from != 0 {
			if err := unix.Bind(client.fd, sockaddr(fam.domain, fam.local, from)); err != nil {
				return err
			}
		}
		return unix.Connect(client.fd, sockaddr(fam.domain, fam.server, port))
	})
	var err error
	if server.fd, _, err = unix.Accept(listener); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*end{client, server} {
		_ = unix.SetsockoptInt(e.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		t.Cleanup(e.close)
	}
	return client, server
}

func (e *end) close() {
	if e.fd >= 0 {
		_ = unix.Close(e.fd)
		e.fd = -1
	}
}

// reset closes with a RST.
func (e *end) reset() {
	_ = unix.SetsockoptLinger(e.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	e.close()
}

func (e *end) send(n int) {
	e.t.Helper()
	if err := e.write(n); err != nil {
		e.t.Fatal(err)
	}
}

func (e *end) write(n int) error {
	for b := make([]byte, n); len(b) > 0; {
		n, err := unix.Write(e.fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		b = b[n:]
	}
	return nil
}

func (e *end) receive(n int) {
	e.t.Helper()
	if err := e.read(n); err != nil {
		e.t.Fatal(err)
	}
}

func (e *end) read(n int) error {
	for b := make([]byte, n); len(b) > 0; {
		n, err := unix.Read(e.fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if n == 0 {
			return fmt.Errorf("read: connection ended, %d bytes are missing", len(b))
		}
		b = b[n:]
	}
	return nil
}

// carry sends n bytes from one end to the other, which may be more than the
// buffers between them hold.
func carry(t testing.TB, from, to *end, n int) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- from.write(n) }()
	to.receive(n)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// load loads the probes for the lab and closes them with the test.
func load(t testing.TB, opts Options) *Probes {
	t.Helper()
	testkit.RequireRoot(t)
	p, problems := Load(opts)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, problem := range problems {
		t.Fatalf("%s: %s", problem.Reason, problem.Detail)
	}
	return p
}

func drain(t testing.TB, p *Probes) Events {
	t.Helper()
	var e Events
	if err := p.Drain(&e); err != nil {
		t.Fatal(err)
	}
	return e
}

func openNow(t testing.TB, p *Probes) Events {
	t.Helper()
	var e Events
	if err := p.Open(&e); err != nil {
		t.Fatal(err)
	}
	return e
}

// eventually waits for a condition that the kernel's timers bring about.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !condition(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for: %s", what)
		}
		_, _ = unix.Poll(nil, 1) // leave the CPU to the kernel's work
	}
}

// counter reads one of a namespace's counters: "Tcp RetransSegs",
// "TcpExt TCPKeepAlive".
func counter(t testing.TB, netns, group, name string) int {
	t.Helper()
	out := testkit.Run(t, "ip", "netns", "exec", netns, "cat", "/proc/net/snmp", "/proc/net/netstat")
	lines := strings.Split(out, "\n")
	for i := 0; i+1 < len(lines); i++ {
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		if len(names) == 0 || names[0] != group+":" || len(names) != len(values) {
			continue
		}
		for j, n := range names {
			if n == name {
				v, err := strconv.Atoi(values[j])
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
		}
	}
	t.Fatalf("no counter %s %s in %s", group, name, netns)
	return 0
}

// drop drops at a namespace's ingress what the nftables match says, until the
// returned function or the test's end.
func drop(t testing.TB, netns, match string) (stop func()) {
	t.Helper()
	rules := fmt.Sprintf("table netdev gf { chain in { type filter hook ingress device gfe0 priority 0; %s counter drop; }; }", match)
	cmd := exec.Command("ip", "netns", "exec", netns, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v\n%s", err, out)
	}
	return func() { testkit.Run(t, "ip", "netns", "exec", netns, "nft", "delete", "table", "netdev", "gf") }
}

// dropped reads the drop rule's packet counter.
func dropped(t testing.TB, netns string) int {
	t.Helper()
	fields := strings.Fields(testkit.Run(t, "ip", "netns", "exec", netns, "nft", "list", "table", "netdev", "gf"))
	for i, f := range fields {
		if f == "packets" {
			n, err := strconv.Atoi(fields[i+1])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no drop counter")
	return 0
}

// ownComm is the name of this process as the kernel knows it.
func ownComm(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(syscall.Getpid()) + "/comm")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func hostPort(addr string, port int) string {
	return netip.AddrPortFrom(netip.MustParseAddr(addr), uint16(port)).String()
}
