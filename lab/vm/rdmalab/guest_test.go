//go:build guest

package rdmalab_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"grayfail/internal/testkit"
	"grayfail/lab/vm/rdmalab"
)

// queuePair is what iproute2's rdma tells.
type queuePair struct {
	Device string `json:"ifname"`
	Port   int    `json:"port"`
	Number int    `json:"lqpn"`
	Type   string `json:"type"`
	State  string `json:"state"`
	PID    int    `json:"pid"`
}

func queuePairsOf(t *testing.T, a *rdmalab.Agent) map[string]queuePair {
	t.Helper()
	var all []queuePair
	if err := json.Unmarshal([]byte(testkit.Run(t, "rdma", "-j", "resource", "show", "qp")), &all); err != nil {
		t.Fatal(err)
	}
	t.Logf("pid %d: %+v", a.PID, all)
	byNumber := make(map[string]queuePair)
	for _, q := range all {
		// The kernel names the thread that opened the device.
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", a.PID, q.PID)); err == nil {
			byNumber[fmt.Sprint(q.Number)] = q
		}
	}
	return byNumber
}

func TestGuestTwoPort(t *testing.T) {
	rdmalab.Netdev(t, "tp1", "10.9.1.1/24")
	rdmalab.Netdev(t, "tp2", "10.9.2.1/24")
	device := rdmalab.TwoPort(t, "tp1", "tp2")
	a := rdmalab.Start(t)
	reset := a.Do("pair idle %s", device)
	ready := a.Ready("leg", device, 2, netip.MustParseAddr("10.9.2.1"), netip.MustParseAddr("10.9.2.2"), 77)
	got := queuePairsOf(t, a)
	if q := got[reset]; q.State != "RESET" || q.Port != 0 {
		t.Errorf("in RESET: %+v", q)
	}
	if q := got[ready]; q.State != "RTS" || q.Port != 2 || q.Type != "RC" {
		t.Errorf("in RTS: %+v", q)
	}
	a.Stop()
	if left := queuePairsOf(t, a); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestGuestRXE(t *testing.T) {
	rdmalab.Veth(t, "ve1", "ve2")
	rdmalab.Up(t, "ve1", "10.9.3.1/24")
	testkit.Run(t, "ip", "neigh", "replace", "10.9.3.2", "lladdr", "02:00:00:00:00:02", "dev", "ve1")
	rdmalab.RXE(t, "rxe0", "ve1")
	a := rdmalab.Start(t)
	ready := a.Ready("leg", "rxe0", 1, netip.MustParseAddr("10.9.3.1"), netip.MustParseAddr("10.9.3.2"), 77)
	if q := queuePairsOf(t, a)[ready]; q.State != "RTS" || q.Port != 1 {
		t.Errorf("%+v", q)
	}
	a.Do("register rxe0 %d", 1<<20)
}
