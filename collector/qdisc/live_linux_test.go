package qdisc

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"path/filepath"
	"strings"
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

// dropIPv4 is a classic BPF program for tc's direct action mode: TC_ACT_SHOT
// for IPv4, TC_ACT_OK for the rest.
const dropIPv4 = "4,40 0 0 12,21 0 1 2048,6 0 0 2,6 0 0 0"

// lab makes two namespaces, joined by two veth pairs: shaped on the side of a
// (tbf; htb with one explicit and one default leaf), dropping on the side of b
// (clsact, ingress).
func lab(t testing.TB) (a, b string) {
	t.Helper()
	a, b = testkit.Netns(t, "gf-qdisc-a"), testkit.Netns(t, "gf-qdisc-b")
	for _, ns := range []string{a, b} {
		testkit.Run(t, "ip", "netns", "exec", ns, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
	}
	for i := range 2 {
		da, db := fmt.Sprintf("qa%d", i), fmt.Sprintf("qb%d", i)
		testkit.Run(t, "ip", "-n", a, "link", "add", da, "type", "veth", "peer", "name", db, "netns", b)
		for _, end := range [][3]string{{a, da, "1"}, {b, db, "2"}} {
			testkit.Run(t, "ip", "-n", end[0], "addr", "add", fmt.Sprintf("10.79.%d.%s/24", i, end[2]), "dev", end[1])
			testkit.Run(t, "ip", "-n", end[0], "link", "set", end[1], "up")
		}
		testkit.Run(t, "ip", "-n", a, "neigh", "add", fmt.Sprintf("10.79.%d.2", i), "dev", da, "lladdr", "02:00:00:00:00:01")
	}
	tc := func(ns, args string) {
		t.Helper()
		testkit.Run(t, "tc", append([]string{"-n", ns}, strings.Fields(args)...)...)
	}
	tc(a, "qdisc add dev qa0 root handle 8001: tbf rate 8mbit burst 4k limit 8k")
	// The default leaf takes its limit from the device.
	testkit.Run(t, "ip", "-n", a, "link", "set", "qa1", "txqueuelen", "10")
	tc(a, "qdisc add dev qa1 root handle 1: htb default 0x20")
	tc(a, "class add dev qa1 parent 1: classid 1:10 htb rate 8mbit")
	tc(a, "class add dev qa1 parent 1: classid 1:20 htb rate 8mbit burst 4k cburst 4k")
	tc(a, "qdisc add dev qa1 parent 1:10 handle 10: pfifo limit 5")
	tc(b, "qdisc add dev qb0 clsact")
	testkit.Run(t, "tc", "-n", b, "filter", "add", "dev", "qb0", "ingress", "bpf", "da", "bytecode", dropIPv4)
	tc(b, "qdisc add dev qb1 handle ffff: ingress")
	testkit.Run(t, "tc", "-n", b, "filter", "add", "dev", "qb1", "ingress", "bpf", "da", "bytecode", dropIPv4)
	return a, b
}

// send sends n datagrams of size bytes from namespace ns to addr. Drops of the
// qdisc show as ENOBUFS and are expected.
func send(t testing.TB, ns, addr string, n, size int) {
	t.Helper()
	testkit.InNetns(t, ns, func() error {
		c, err := net.Dial("udp4", addr)
		if err != nil {
			return err
		}
		defer c.Close()
		for range n {
			if _, err := c.Write(make([]byte, size)); err != nil && !errors.Is(err, unix.ENOBUFS) {
				return err
			}
		}
		return nil
	})
}

func tcShow(t testing.TB, ns string) []byte {
	return []byte(testkit.Run(t, "tc", "-n", ns, "-s", "-j", "qdisc", "show", "invisible"))
}

// TestLiveEqualsTC: after real traffic, at rest, every number of every qdisc is
// what tc reads, and drops stand on the qdisc that dropped.
func TestLiveEqualsTC(t *testing.T) {
	a, b := lab(t)
	send(t, a, "10.79.0.2:9", 100, 1000)
	send(t, a, "10.79.1.2:9", 100, 1000)

	c := New(Options{})
	t.Cleanup(func() { c.Close() })
	var qa, qb []event.Qdisc
	testkit.Eventually(t, 20*time.Second, func() error {
		for _, side := range []struct {
			ns  string
			out *[]event.Qdisc
		}{{a, &qa}, {b, &qb}} {
			ns, err := netns.ByName(side.ns)
			if err != nil {
				return err
			}
			list, problems, err := c.Collect(12345, []netns.Namespace{ns})
			if err != nil || len(problems) != 0 {
				return fmt.Errorf("Collect: %v, %w", problems, err)
			}
			for _, q := range list {
				if q.Netns != side.ns || q.TimeNS != 12345 {
					return fmt.Errorf("not stamped: %+v", q)
				}
				if q.QueuePackets != 0 {
					return fmt.Errorf("not at rest: %+v", q)
				}
			}
			if diff := differ(fromTC(t, tcShow(t, side.ns)), list); diff != "" {
				return errors.New(diff)
			}
			*side.out = list
		}
		return nil
	})

	get := func(list []event.Qdisc, device, kind, parent string) event.Qdisc {
		t.Helper()
		q, err := find(list, device, kind, parent)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	tbf, child := get(qa, "qa0", "tbf", "root"), get(qa, "qa0", "bfifo", "8001:1")
	if child.Drops == 0 || tbf.Drops != child.Drops {
		t.Errorf("tbf dropped %d, its child %d: want the same, and some", tbf.Drops, child.Drops)
	}
	clsact := get(qb, "qb0", "clsact", "clsact")
	if clsact.Drops != child.Packets || clsact.Packets != child.Packets {
		t.Errorf("clsact saw %d and dropped %d of the %d packets that left", clsact.Packets, clsact.Drops, child.Packets)
	}
	if got := tbf.Drops + clsact.Drops; got != 100 {
		t.Errorf("of 100 datagrams tbf and clsact dropped %d", got)
	}
	htb, leaf := get(qa, "qa1", "htb", "root"), get(qa, "qa1", "pfifo", "1:20")
	if leaf.Drops == 0 || htb.Drops != leaf.Drops {
		t.Errorf("htb dropped %d, its hidden default leaf %d: want the same, and some", htb.Drops, leaf.Drops)
	}
	if q := get(qa, "qa1", "pfifo", "1:10"); q.Handle != "10:" || q.Packets != 0 {
		t.Errorf("explicit leaf: %+v", q)
	}
	if q := get(qb, "qb1", "ingress", "ingress"); q.Drops == 0 || q.Handle != "ffff:" {
		t.Errorf("ingress: %+v", q)
	}
	get(qa, "lo", "noqueue", "root")
	if *update {
		capture(t, a)
		capture(t, b)
	}
}

func capture(t *testing.T, ns string) {
	request, err := qdiscRequest()
	if err != nil {
		t.Fatal(err)
	}
	link, err := netns.LinkRequest(0)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(fixtures, strings.TrimPrefix(ns, "gf-qdisc-"))
	testkit.InNetns(t, ns, func() error {
		qdiscs, err := testkit.CaptureDump(unix.NETLINK_ROUTE, unix.RTM_GETQDISC, request)
		if err != nil {
			return err
		}
		links, err := testkit.CaptureDump(unix.NETLINK_ROUTE, unix.RTM_GETLINK, link.Data)
		if err != nil {
			return err
		}
		testkit.WriteFile(t, base+"-qdisc.bin", qdiscs)
		testkit.WriteFile(t, base+"-link.bin", links)
		return nil
	})
	testkit.WriteFile(t, base+"-tc.json", tcShow(t, ns))
}

// TestLiveInterfaceVanishes: devices come and go while dumps are read; nothing
// fails, and no qdisc of theirs is left under a number.
func TestLiveInterfaceVanishes(t *testing.T) {
	name := testkit.Netns(t, "gf-qdisc-v")
	ns, err := netns.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	churn := testkit.Start(t, "ip", "netns", "exec", name, "sh", "-c",
		"while :; do ip link add qv0 type veth peer name qv1; ip link set qv0 up; ip link del qv0; done")
	c := New(Options{})
	seen := 0
	testkit.Eventually(t, 30*time.Second, func() error {
		for range 200 {
			list, problems, err := c.Collect(1, []netns.Namespace{ns})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				if p.Reason != netns.ReasonInterrupted {
					t.Fatalf("problem: %+v", p)
				}
			}
			for _, q := range list {
				if strings.HasPrefix(q.Device, "qv") {
					seen++
				}
				if strings.HasPrefix(q.Device, "if") && !strings.HasPrefix(q.Device, "ifb") && len(problems) == 0 {
					t.Fatalf("a vanished interface is listed: %+v", q)
				}
			}
		}
		if seen == 0 {
			return errors.New("the churning devices were never seen")
		}
		return nil
	})
	churn.Stop()
}

// TestLiveLetsGo: reading a namespace again and again does not keep it alive.
// When it ends, its end of a veth pair goes, and with it the other end.
func TestLiveLetsGo(t *testing.T) {
	a, b := testkit.Netns(t, "gf-qdisc-c"), testkit.Netns(t, "gf-qdisc-d")
	testkit.Run(t, "ip", "-n", a, "link", "add", "qc0", "type", "veth", "peer", "name", "qd0", "netns", b)
	own, err := netns.Own()
	if err != nil {
		t.Fatal(err)
	}
	na, err := netns.ByName(a)
	if err != nil {
		t.Fatal(err)
	}
	nb, err := netns.ByName(b)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{})
	t.Cleanup(func() { c.Close() })
	read := func() []event.Qdisc {
		list, problems, err := c.Collect(1, []netns.Namespace{own, na, nb})
		if err != nil || len(problems) != 0 {
			t.Fatalf("Collect: %v, %v", problems, err)
		}
		return list
	}
	read()
	testkit.Run(t, "ip", "-n", b, "link", "set", "qd0", "up")
	if _, err := find(read(), "qd0", "noqueue", "root"); err != nil {
		t.Error(err)
	}
	testkit.Run(t, "ip", "netns", "del", b)
	testkit.Eventually(t, 20*time.Second, func() error {
		for _, q := range read() { // b has vanished: no problem, no error
			if q.Netns == b {
				return fmt.Errorf("still there: %+v", q)
			}
		}
		if out := testkit.Run(t, "ip", "-n", a, "-o", "link"); strings.Contains(out, "qc0") {
			return errors.New("the veth pair of the removed namespace is kept alive")
		}
		return nil
	})
}

// TestLiveWithoutPermission: what our own namespace has is read without any
// capability, what another has is a problem that names the capability.
func TestLiveWithoutPermission(t *testing.T) {
	own, err := netns.Own()
	if err != nil {
		t.Fatal(err)
	}
	var (
		list     []event.Qdisc
		problems []event.Problem
		failed   error
	)
	// A path that only its owner may search stands for a process of another user.
	hidden := netns.Namespace{Name: "box", Inode: own.Inode, Path: "/proc/1/ns/net"}
	testkit.AsNobody(t, func() {
		c := New(Options{})
		defer c.Close()
		list, problems, failed = c.Collect(1, []netns.Namespace{own, hidden})
	})
	if failed != nil || len(list) == 0 {
		t.Errorf("own namespace: %d qdiscs, %v", len(list), failed)
	}
	if len(problems) != 1 || problems[0].Reason != netns.ReasonNoPermission || !strings.Contains(problems[0].Detail, `"box"`) || !strings.Contains(problems[0].Detail, "CAP_SYS_ADMIN") {
		t.Errorf("problems = %v", problems)
	}
}
