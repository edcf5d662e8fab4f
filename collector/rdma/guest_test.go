//go:build guest

package rdma

import (
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"grayfail/event"
	"grayfail/internal/testkit"
	"grayfail/lab/vm/rdmalab"
)

// These tests run in the guest of lab/vm. They write the files of sysfs where
// the host can see them: "go test ./lab/vm -capture collector/rdma" makes fixtures of them.

func capture(t *testing.T, name, device string) {
	t.Helper()
	sys := os.DirFS("/sys/" + classDir)
	var a txtar.Archive
	err := fs.WalkDir(sys, device+"/ports", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		// rxe's GID table has 1024 entries, all but the first not in use.
		if index, err := strconv.Atoi(d.Name()); err == nil && index >= 16 {
			return nil
		}
		b, err := fs.ReadFile(sys, path)
		if err != nil {
			a.Comment = append(a.Comment, fmt.Sprintf("%s: %v\n", path, err)...)
			return nil
		}
		a.Files = append(a.Files, txtar.File{Name: path, Data: b})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	testkit.WriteFile(t, filepath.Join(os.Getenv("VM_SHARE"), "captured/collector/rdma/testdata", name), txtar.Format(&a))
}

var (
	rxeLocal, rxePeer = netip.MustParseAddr("10.9.3.1"), netip.MustParseAddr("10.9.3.2")
	rxeLocal6         = netip.MustParseAddr("fd00:9::1")
	local             = [3]netip.Addr{1: netip.MustParseAddr("10.9.1.1"), 2: netip.MustParseAddr("10.9.2.1")}
	peer              = [3]netip.Addr{1: netip.MustParseAddr("10.9.1.2"), 2: netip.MustParseAddr("10.9.2.2")}
)

func rxe(t *testing.T) {
	t.Helper()
	rdmalab.Veth(t, "ve1", "ve2")
	rdmalab.Up(t, "ve1", rxeLocal.String()+"/24", rxeLocal6.String()+"/64")
	testkit.Run(t, "ip", "neigh", "replace", rxePeer.String(), "lladdr", "02:00:00:00:00:02", "dev", "ve1")
	rdmalab.RXE(t, "rxe0", "ve1")
}

func twoPort(t *testing.T) string {
	t.Helper()
	for port := 1; port <= 2; port++ {
		rdmalab.Netdev(t, fmt.Sprintf("tp%d", port), local[port].String()+"/24")
	}
	return rdmalab.TwoPort(t, "tp1", "tp2")
}

// collector reads everything every time.
func collector(t *testing.T) *Collector {
	t.Helper()
	c := New(Options{Every: time.Nanosecond})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// collect reads once, without problems.
func collect(t *testing.T, c *Collector) event.RDMA {
	t.Helper()
	r, problems, err := c.Collect(time.Now().UnixNano())
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v, %v", problems, err)
	}
	return r
}

func port(t *testing.T, r event.RDMA, device string, number int) event.RDMAPort {
	t.Helper()
	for _, p := range r.Ports {
		if p.Device == device && p.Port == number {
			return p
		}
	}
	t.Fatalf("no port %d of %s in %+v", number, device, r.Ports)
	return event.RDMAPort{}
}

func hasGID(p event.RDMAPort, addr netip.Addr, kind string) bool {
	return slices.ContainsFunc(p.GIDs, func(g event.GID) bool {
		return g.Addr == addr && g.Type == kind && g.Netdev == p.Netdev
	})
}

func TestGuestDevices(t *testing.T) {
	c := collector(t)
	testkit.Run(t, "modprobe", "ib_uverbs") // the core alone
	if r := collect(t, c); len(r.Ports)+len(r.QueuePairs)+len(r.Counters) != 0 {
		t.Errorf("without a device: %+v", r)
	}
	rxe(t)
	name := twoPort(t)
	rdmalab.GIDIndex(t, "rxe0", 1, rdmalab.GID(rxeLocal6))
	rdmalab.GIDIndex(t, name, 2, rdmalab.GID(local[2]))
	a := rdmalab.Start(t)
	b := rdmalab.Start(t)
	a.Ready("one", name, 1, local[1], peer[1], 101)
	a.Ready("two", name, 2, local[2], peer[2], 102)
	b.Do("pair reset rxe0")
	rdmalab.SetCounters(t, 1, [4]uint64{1, 2, 3, 4})
	rdmalab.SetCounters(t, 2, [4]uint64{0, 0, 9, 0})

	r := collect(t, c)
	p := port(t, r, "rxe0", 1)
	if !p.Active || p.Netdev != "ve1" || p.LinkLayer != "Ethernet" || p.Protocol != "roce" || p.RateBytesPerSecond <= 0 || !p.GIDsRead {
		t.Errorf("%+v", p)
	}
	if !hasGID(p, rxeLocal, "RoCE v2") || !hasGID(p, rxeLocal6, "RoCE v2") {
		t.Errorf("GIDs %+v", p.GIDs)
	}
	p = port(t, r, name, 2)
	if !p.Active || p.Netdev != "tp2" || p.RateBytesPerSecond != 12.5e9 || !hasGID(p, local[2], "RoCE v2") {
		t.Errorf("%+v", p)
	}
	count := make(map[string]int)
	for _, q := range r.QueuePairs {
		who := "other"
		switch q.PID {
		case a.PID:
			who = "a"
		case b.PID:
			who = "b"
		}
		count[fmt.Sprintf("%s %s/%d %s %s", who, q.Device, q.Port, q.Type, q.State)]++
	}
	want := map[string]int{
		"a " + name + "/1 RC RTS": 1, "a " + name + "/2 RC RTS": 1, "b rxe0/0 RC RESET": 1, "other rxe0/1 GSI RTS": 1,
	}
	if fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("queue pairs %v, want %v", count, want)
	}
	if !slices.Contains(r.Counters, event.RDMACounter{Device: name, Port: 2, Event: "local_ack_timeout_err", Value: 9}) {
		t.Errorf("counters %+v", r.Counters)
	}
	capture(t, "6.1-rxe.txtar", "rxe0")
	capture(t, "6.1-twoport.txtar", name)

	// A port goes down, a device goes.
	testkit.Run(t, "ip", "link", "set", "tp2", "down")
	if p := port(t, collect(t, c), name, 2); p.Active || p.State != "DOWN" {
		t.Errorf("%+v", p)
	}
	a.Stop()
	rdmalab.RemoveTwoPort(t)
	r = collect(t, c)
	if len(r.Ports) != 1 || r.Ports[0].Device != "rxe0" || len(r.QueuePairs) != 2 {
		t.Errorf("after the device was removed: %+v", r)
	}
}

// Devices that come and go while they are read are no problem, and nothing is
// left open.
func TestGuestHotPlug(t *testing.T) {
	rxe(t)
	rdmalab.Netdev(t, "tp1", local[1].String()+"/24")
	rdmalab.Netdev(t, "tp2", local[2].String()+"/24")
	c := collector(t)
	collect(t, c)
	files := openFiles(t)
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if r, problems, err := c.Collect(time.Now().UnixNano()); err != nil || len(problems) > 0 || len(r.Ports) == 0 {
				stopped <- fmt.Errorf("%d ports, %v, %w", len(r.Ports), problems, err)
				return
			}
		}
	}()
	for range 5 {
		name := rdmalab.TwoPort(t, "tp1", "tp2")
		a := rdmalab.Start(t)
		a.Do("many %s 2 20", name)
		a.Stop()
		rdmalab.RemoveTwoPort(t)
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if now := openFiles(t); now != files {
		t.Errorf("%d open files, %d before", now, files)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
