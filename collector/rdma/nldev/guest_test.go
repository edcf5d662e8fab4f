//go:build guest

package nldev

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"grayfail/internal/testkit"
	"grayfail/lab/vm/rdmalab"
)

// These tests run in the guest of lab/vm. They write the kernel's answers,
// byte for byte, where the host can see them: "go test ./lab/vm -capture collector/rdma"
// makes fixtures of them.

func typeOf(op Op) uint16 { return clientNLDEV<<10 | uint16(op) }

// TestMain lists queue pairs for another process where it is asked to: for
// TestGuestPIDNamespace.
func TestMain(m *testing.M) {
	request, asked := os.LookupEnv("NLDEV_REQUEST")
	if !asked {
		os.Exit(m.Run())
	}
	b, err := hex.DecodeString(request)
	if err == nil {
		b, err = testkit.CaptureDump(unix.NETLINK_RDMA, typeOf(OpResQPGet), b)
	}
	if err == nil {
		err = os.WriteFile(os.Getenv("NLDEV_ANSWER"), b, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func encode(t *testing.T, s *subject) []byte {
	t.Helper()
	b, err := s.attributes()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func captured(name string) string {
	return filepath.Join(os.Getenv("VM_SHARE"), "captured/collector/rdma/nldev/testdata", name)
}

func dump(t *testing.T, file string, op Op, s *subject) {
	t.Helper()
	b, err := testkit.CaptureDump(unix.NETLINK_RDMA, typeOf(op), encode(t, s))
	if err != nil {
		t.Fatal(err)
	}
	testkit.WriteFile(t, captured(file), b)
}

func one(t *testing.T, file string, op Op, s *subject) {
	t.Helper()
	b, err := testkit.CaptureAnswer(unix.NETLINK_RDMA, typeOf(op), encode(t, s))
	if err != nil {
		t.Fatal(err)
	}
	testkit.WriteFile(t, captured(file), b)
}

func capture(t *testing.T, dir string, d Device) {
	t.Helper()
	about := &subject{device: d.Index}
	dump(t, dir+"/get.nl", OpGet, nil)
	dump(t, dir+"/port_get.nl", OpPortGet, about)
	dump(t, dir+"/res_qp_get.nl", OpResQPGet, about)
	dump(t, dir+"/res_mr_get.nl", OpResMRGet, about)
	one(t, dir+"/res_get.nl", OpResGet, about)
	one(t, dir+"/sys_get.nl", OpSysGet, nil)
	for port := uint32(1); port <= d.Ports; port++ {
		about := &subject{d.Index, port}
		one(t, fmt.Sprintf("%s/port_get_%d.nl", dir, port), OpPortGet, about)
		one(t, fmt.Sprintf("%s/stat_get_%d.nl", dir, port), OpStatGet, about)
	}
	one(t, dir+"/stat_get_no_port.nl", OpStatGet, &subject{d.Index, d.Ports + 1})
}

func mustDial(t *testing.T) *Client {
	t.Helper()
	c, err := Dial(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// device finds a device; its name may be a pattern's only match.
func device(t *testing.T, c *Client, name string) Device {
	t.Helper()
	devices, err := c.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devices {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("no device %s in %v", name, devices)
	return Device{}
}

var (
	rxeLocal, rxePeer = netip.MustParseAddr("10.9.3.1"), netip.MustParseAddr("10.9.3.2")
	local             = [3]netip.Addr{1: netip.MustParseAddr("10.9.1.1"), 2: netip.MustParseAddr("10.9.2.1")}
	peer              = [3]netip.Addr{1: netip.MustParseAddr("10.9.1.2"), 2: netip.MustParseAddr("10.9.2.2")}
)

func rxe(t *testing.T) *rdmalab.Agent {
	t.Helper()
	rdmalab.Veth(t, "ve1", "ve2")
	rdmalab.Up(t, "ve1", rxeLocal.String()+"/24")
	testkit.Run(t, "ip", "neigh", "replace", rxePeer.String(), "lladdr", "02:00:00:00:00:02", "dev", "ve1")
	rdmalab.RXE(t, "rxe0", "ve1")
	return rdmalab.Start(t)
}

func twoPort(t *testing.T) (string, *rdmalab.Agent) {
	t.Helper()
	for port := 1; port <= 2; port++ {
		rdmalab.Netdev(t, fmt.Sprintf("tp%d", port), local[port].String()+"/24")
	}
	return rdmalab.TwoPort(t, "tp1", "tp2"), rdmalab.Start(t)
}

// expect compares what is told of the queue pairs of an agent.
func expect(t *testing.T, got []QueuePair, want map[string]QueuePair) {
	t.Helper()
	for _, q := range got {
		w, known := want[fmt.Sprint(q.LQPN)]
		if !known {
			continue
		}
		delete(want, fmt.Sprint(q.LQPN))
		if q.PID == 0 || q.KernelName != "" || q.Type != TypeRC ||
			q.Port != w.Port || q.State != w.State || q.RQPN != w.RQPN || q.Device.Name != w.Device.Name {
			t.Errorf("%+v, want %+v", q, w)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v in %v", want, got)
	}
}

func TestGuestRXE(t *testing.T) {
	a, c := rxe(t), mustDial(t)
	d := device(t, c, "rxe0")
	if d.Ports != 1 || d.Protocol != "roce" || d.NodeType != NodeCA {
		t.Errorf("%+v", d)
	}
	dev := Handle{Name: "rxe0"}
	want := map[string]QueuePair{
		a.Do("pair reset rxe0"):                           {Device: dev, State: StateReset},
		a.Do("pair init rxe0"):                            {Device: dev, Port: 1, State: StateInit},
		a.Ready("rts", "rxe0", 1, rxeLocal, rxePeer, 77):  {Device: dev, Port: 1, State: StateRTS, RQPN: 77},
		a.Ready("fail", "rxe0", 1, rxeLocal, rxePeer, 78): {Device: dev, Port: 1, State: StateErr, RQPN: 78},
	}
	a.Do("init init 1")
	a.Do("fail fail")
	a.Do("register rxe0 %d", 1<<20)
	pairs, err := c.QueuePairs(d.Index)
	if err != nil {
		t.Fatal(err)
	}
	kernels := 0
	for _, q := range pairs {
		if q.KernelName != "" && q.PID == 0 && q.Type == TypeGSI && q.Port == 1 {
			kernels++
		}
	}
	if kernels != 1 {
		t.Errorf("%d GSI queue pairs of the kernel in %+v", kernels, pairs)
	}
	expect(t, pairs, want)

	regions, err := c.MemoryRegions(d.Index)
	if err != nil || len(regions) != 1 || regions[0].Bytes != 1<<20 || regions[0].PID == 0 {
		t.Errorf("%+v, %v", regions, err)
	}
	ports, err := c.Ports(d)
	if err != nil || len(ports) != 1 || ports[0].State != PortActive || ports[0].Netdev != "ve1" || ports[0].NetdevIndex == 0 {
		t.Errorf("%+v, %v", ports, err)
	}
	counters, err := c.Counters(d.Index, 1)
	if err != nil || len(counters.Counters) < 10 || counters.Port != 1 {
		t.Errorf("%+v, %v", counters, err)
	}
	resources, err := c.Resources(d.Index)
	if err != nil || resources["qp"] != uint64(len(pairs)) || resources["mr"] != 1 {
		t.Errorf("%+v, %v; %d queue pairs", resources, err, len(pairs))
	}
	system, err := c.System()
	if err != nil || !system.SharedNetns {
		t.Errorf("%+v, %v", system, err)
	}
	capture(t, "6.1-rxe", d)
}

func TestGuestTwoPort(t *testing.T) {
	name, a := twoPort(t)
	c := mustDial(t)
	d := device(t, c, name)
	if d.Ports != 2 {
		t.Errorf("%+v", d)
	}
	dev := Handle{Name: name}
	want := map[string]QueuePair{
		a.Do("pair reset %s", name):                     {Device: dev, State: StateReset},
		a.Ready("one", name, 1, local[1], peer[1], 101): {Device: dev, Port: 1, State: StateRTS, RQPN: 101},
		a.Ready("two", name, 2, local[2], peer[2], 102): {Device: dev, Port: 2, State: StateRTS, RQPN: 102},
	}
	rdmalab.SetCounters(t, 1, [4]uint64{1, 2, 3, 4})
	rdmalab.SetCounters(t, 2, [4]uint64{5, 6, 7, 1 << 40})
	testkit.Run(t, "ip", "link", "set", "tp2", "down")
	pairs, err := c.QueuePairs(d.Index)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, pairs, want)
	ports, err := c.Ports(d)
	if err != nil || len(ports) != 2 || ports[0].State != PortActive || ports[1].State != PortDown || ports[1].Netdev != "tp2" {
		t.Errorf("%+v, %v", ports, err)
	}
	counters, err := c.Counters(d.Index, 2)
	if err != nil || len(counters.Counters) != 4 || counters.Counters[3] != (Counter{rdmalab.Counters[3], 1 << 40}) {
		t.Errorf("%+v, %v", counters, err)
	}
	if _, err := c.Counters(d.Index, 3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("port 3: %v", err)
	}
	capture(t, "6.1-twoport", d)

	// Its netdevs have no name in another namespace.
	ns := testkit.Netns(t, "gf-rdma-other")
	testkit.InNetns(t, ns, func() error {
		there, err := Dial(nil)
		if err != nil {
			return err
		}
		defer there.Close()
		ports, err := there.Ports(d)
		if err != nil || len(ports) != 2 || ports[0].Netdev != "" || ports[0].State != PortActive {
			t.Errorf("in another namespace: %+v, %v", ports, err)
		}
		return nil
	})

	a.Stop()
	rdmalab.RemoveTwoPort(t)
	_, portErr := c.Ports(d)
	_, pairErr := c.QueuePairs(d.Index)
	_, statErr := c.Counters(d.Index, 1)
	for _, err := range []error{portErr, pairErr, statErr} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("of a device that was removed: %v", err)
		}
	}
	if c.Broken() {
		t.Error("the connection is of no more use")
	}
}

// A thousand queue pairs take several datagrams.
func TestGuestMany(t *testing.T) {
	name, a := twoPort(t)
	a.Do("many %s 2 1000", name)
	c := mustDial(t)
	pairs, err := c.QueuePairs(device(t, c, name).Index)
	if err != nil || len(pairs) != 1000 {
		t.Errorf("%d queue pairs, %v", len(pairs), err)
	}
	for _, q := range pairs {
		if q.Port != 2 || q.State != StateInit || q.PID == 0 {
			t.Fatalf("%+v", q)
		}
	}
}

// Owners in a PID namespace that the reader does not see have no PID.
func TestGuestPIDNamespace(t *testing.T) {
	a, c := rxe(t), mustDial(t)
	a.Ready("leg", "rxe0", 1, rxeLocal, rxePeer, 77)
	file := captured("6.1-rxe/res_qp_get_pidns.nl")
	testkit.WriteFile(t, file, nil)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "NLDEV_ANSWER="+file,
		"NLDEV_REQUEST="+hex.EncodeToString(encode(t, &subject{device: device(t, c, "rxe0").Index})))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pairs, err := ParseQueuePairs(testkit.ReadDump(t, file))
	if err != nil || len(pairs) != 2 {
		t.Fatalf("%+v, %v", pairs, err)
	}
	for _, q := range pairs {
		if q.PID != 0 || (q.KernelName == "") != (q.Type == TypeRC) {
			t.Errorf("%+v", q)
		}
	}
}
