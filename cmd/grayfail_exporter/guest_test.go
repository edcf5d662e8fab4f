//go:build guest

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grayfail/internal/testkit"
	"grayfail/lab/vm/rdmalab"
)

// These tests run in the guest of lab/vm, with the exporter as it is built.
// The workers' addresses are on a netdev without RDMA: all that is looked at
// is the client's side.

// worker serves any number of legs at 10.9.100.1, .2, ...
func worker(t *testing.T, legs int) {
	t.Helper()
	rdmalab.Netdev(t, "workers")
	w := rdmalab.Start(t)
	for i := 1; i <= legs; i++ {
		rdmalab.Up(t, "workers", fmt.Sprintf("10.9.100.%d/32", i))
		w.Do("serve 10.9.100.%d:50052", i)
	}
}

// connect opens leg n from a local address and says hello.
func connect(a *rdmalab.Agent, n int, local string) {
	a.Do("dial %d %s 10.9.100.%d:50052", n, local, n)
	a.Do("exchange %d 33", n)
}

func exporterPath(t *testing.T) string {
	t.Helper()
	path := os.Getenv("VM_EXPORTER")
	if path == "" {
		t.Fatal("VM_EXPORTER is not set: name ./cmd/grayfail_exporter in vm.Job.Programs")
	}
	return path
}

type guestLeg struct {
	Leg        string `json:"leg"`
	Role       string `json:"role"`
	Local      string `json:"local"`
	RDMADevice string `json:"rdma_device"`
	RDMAPort   int    `json:"rdma_port"`
	Transport  string `json:"transport"`
	Reason     string `json:"reason"`
	PID        int    `json:"pid"`
	QueuePairs []struct {
		Port  int    `json:"port"`
		State string `json:"state"`
		PID   int    `json:"pid"`
	} `json:"queue_pairs"`
}

func (l *guestLeg) words() string {
	return fmt.Sprintf("%s %s %s/%d", l.Transport, l.Reason, l.RDMADevice, l.RDMAPort)
}

// lookAt runs legs --json; it returns the client's legs and the exit code.
func lookAt(t *testing.T) (map[string]*guestLeg, int) {
	t.Helper()
	cmd := exec.Command(exporterPath(t), "legs", "--json")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("exit %d: %s", cmd.ProcessState.ExitCode(), out)
	var doc struct{ Legs []*guestLeg }
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]*guestLeg)
	for _, l := range doc.Legs {
		if l.Role == "client" {
			byName[l.Leg] = l
		}
	}
	return byName, cmd.ProcessState.ExitCode()
}

// checkLegs looks once, and compares every leg and the exit code.
func checkLegs(t *testing.T, exit int, want map[string]string) map[string]*guestLeg {
	t.Helper()
	list, code := lookAt(t)
	got := make(map[string]string)
	for name, l := range list {
		got[name] = l.words()
	}
	if diff := cmp.Diff(want, got); diff != "" || code != exit {
		t.Errorf("exit %d, want %d; legs:\n%s", code, exit, diff)
	}
	return list
}

// scrape reads the samples of the exporter whose line matches; the value by
// the first group of the expression.
func scrape(addr, expression string) (map[string]float64, error) {
	r, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	out := make(map[string]float64)
	for _, m := range regexp.MustCompile(`(?m)^`+expression+` (\S+)$`).FindAllStringSubmatch(string(body), -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, err
		}
		out[m[1]] = v
	}
	return out, nil
}

const fallbackSeries = `grayfail_leg_fallback\{(leg="10[^}]*,reason="[^"]+")\}`

// until waits for the samples of an expression.
func until(t *testing.T, addr, expression string, want map[string]float64) {
	t.Helper()
	testkit.Eventually(t, time.Minute, func() error {
		got, err := scrape(addr, expression)
		if err == nil && !cmp.Equal(got, want) {
			err = fmt.Errorf("%s: %v, want %v", expression, got, want)
		}
		return err
	})
}

func serveInGuest(t *testing.T) (addr string) {
	t.Helper()
	addr = testkit.FreeAddr(t)
	testkit.Start(t, exporterPath(t), "serve", "--web.listen-address", addr)
	return addr
}

// TestGuestPortNotProbed: one process, one card. Leg 1 has a queue pair of
// port 1, leg 2 an address of port 2 and its payload on TCP. Then the process
// asks port 2 as well.
func TestGuestPortNotProbed(t *testing.T) {
	one, two := netip.MustParseAddr("10.9.1.1"), netip.MustParseAddr("10.9.2.1")
	rdmalab.Netdev(t, "tp1", one.String()+"/24")
	rdmalab.Netdev(t, "tp2", two.String()+"/24")
	device := rdmalab.TwoPort(t, "tp1", "tp2")
	worker(t, 2)
	a := rdmalab.Start(t)
	a.Ready("one", device, 1, one, netip.MustParseAddr("10.9.1.2"), 101)
	connect(a, 1, one.String())
	connect(a, 2, two.String())
	a.Do("exchange 2 100000")
	addr, _ := serveWith(t, statesConfig)

	legs := checkLegs(t, 1, map[string]string{
		"10.9.100.1:50052": "rdma  " + device + "/1",
		"10.9.100.2:50052": "fallback port_not_probed " + device + "/2",
	})
	if l := legs["10.9.100.2:50052"]; l != nil && (len(l.QueuePairs) != 1 || l.QueuePairs[0].Port != 1 || l.QueuePairs[0].State != "RTS" || l.QueuePairs[0].PID != a.PID || l.PID != a.PID) {
		t.Errorf("%+v", l)
	}
	text, _ := exec.Command(exporterPath(t), "legs").Output()
	t.Logf("\n%s", text)
	until(t, addr, fallbackSeries, map[string]float64{`leg="10.9.100.2:50052",reason="port_not_probed"`: 1})

	a.Ready("two", device, 2, two, netip.MustParseAddr("10.9.2.2"), 102)
	checkLegs(t, 0, map[string]string{
		"10.9.100.1:50052": "rdma  " + device + "/1",
		"10.9.100.2:50052": "rdma  " + device + "/2",
	})
	until(t, addr, fallbackSeries, map[string]float64{})
	until(t, addr, `grayfail_leg_transport\{(leg="10[^}]*,transport="rdma")\}`, map[string]float64{
		`leg="10.9.100.1:50052",transport="rdma"`: 1, `leg="10.9.100.2:50052",transport="rdma"`: 1,
	})
	const seconds = `grayfail_leg_fallback_seconds_total\{(leg="10[^}]*)\}`
	stood, err := scrape(addr, seconds)
	if err != nil || stood[`leg="10.9.100.2:50052"`] == 0 || stood[`leg="10.9.100.1:50052"`] != 0 {
		t.Errorf("seconds in fallback: %v, %v", stood, err)
	}
	// Another list of queue pairs later it still stands.
	later := time.Now().Add(2 * time.Second)
	testkit.Eventually(t, time.Minute, func() error {
		if time.Now().Before(later) {
			return errors.New("not yet")
		}
		return nil
	})
	if now, err := scrape(addr, seconds); err != nil || !cmp.Equal(now, stood) {
		t.Errorf("seconds in fallback: %v, then %v, %v", stood, now, err)
	}
}

// TestGuestHub: five legs of one process over a card of two ports and a
// soft-RoCE device. Leg 3 is at an address of port 2, and after four legs'
// buffers the memory lock leaves no room for leg 5.
func TestGuestHub(t *testing.T) {
	one, two, three := netip.MustParseAddr("10.9.1.1"), netip.MustParseAddr("10.9.2.1"), netip.MustParseAddr("10.9.3.1")
	rdmalab.Netdev(t, "tp1", one.String()+"/24")
	rdmalab.Netdev(t, "tp2", two.String()+"/24")
	device := rdmalab.TwoPort(t, "tp1", "tp2")
	rdmalab.Veth(t, "ve1", "ve2")
	rdmalab.Up(t, "ve1", three.String()+"/24")
	testkit.Run(t, "ip", "neigh", "replace", "10.9.3.2", "lladdr", "02:00:00:00:00:02", "dev", "ve1")
	rdmalab.RXE(t, "rxe0", "ve1")
	worker(t, 5)

	t.Setenv("VM_AGENT", copyForAll(t, os.Getenv("VM_AGENT")))
	a := rdmalab.StartAs(t, 65534)
	a.Do("memlock %d", 8<<20)
	a.Do("register rxe0 %d", 6400<<10)
	a.Ready("1", device, 1, one, netip.MustParseAddr("10.9.1.2"), 101)
	a.Ready("2", device, 1, one, netip.MustParseAddr("10.9.1.3"), 102)
	a.Ready("4", "rxe0", 1, three, netip.MustParseAddr("10.9.3.2"), 104)
	for n, local := range []netip.Addr{one, one, two, three, three} {
		connect(a, n+1, local.String())
	}
	a.Do("exchange 3 100000")
	a.Do("exchange 5 100000")
	addr := serveInGuest(t)

	checkLegs(t, 1, map[string]string{
		"10.9.100.1:50052": "rdma  " + device + "/1",
		"10.9.100.2:50052": "rdma  " + device + "/1",
		"10.9.100.3:50052": "fallback port_not_probed " + device + "/2",
		"10.9.100.4:50052": "rdma  rxe0/1",
		"10.9.100.5:50052": "fallback memlock rxe0/1",
	})
	text, _ := exec.Command(exporterPath(t), "legs").Output()
	t.Logf("\n%s", text)
	until(t, addr, fallbackSeries, map[string]float64{
		`leg="10.9.100.3:50052",reason="port_not_probed"`: 1,
		`leg="10.9.100.5:50052",reason="memlock"`:         1,
	})
}

// TestGuestLoss: 5% of what rxe0 sends is lost. Its peer sees packets missing,
// rxe0 does not; what the exporter says is what iproute2 says.
func TestGuestLoss(t *testing.T) {
	a, b := netip.MustParsePrefix("10.9.3.1/24"), netip.MustParsePrefix("10.9.3.2/24")
	rdmalab.RXEPair(t, a, b)
	addr := serveInGuest(t)
	rdmalab.PingPong(t, a.Addr(), b.Addr(), 20, 16<<10)
	if c := statistic(t, "rxe1"); c["out_of_seq_request"] != 0 || c["completer_retry_err"] != 0 || c["rcvd_pkts"] == 0 {
		t.Errorf("without loss: %v", c)
	}
	testkit.Run(t, "modprobe", "sch_netem")
	testkit.Run(t, "tc", "qdisc", "add", "dev", "ve1", "root", "netem", "loss", "5%")
	rdmalab.PingPong(t, a.Addr(), b.Addr(), 100, 16<<10)
	t.Log(testkit.Run(t, "tc", "-s", "qdisc", "show", "dev", "ve1"))

	sender, receiver := statistic(t, "rxe0"), statistic(t, "rxe1")
	t.Logf("rxe0 %v\nrxe1 %v", sender, receiver)
	if sender["completer_retry_err"] == 0 || receiver["out_of_seq_request"] == 0 || sender["out_of_seq_request"] != 0 {
		t.Errorf("5%% loss on the way from rxe0 to rxe1:\nrxe0 %v\nrxe1 %v", sender, receiver)
	}
	for device, want := range map[string]map[string]float64{"rxe0": sender, "rxe1": receiver} {
		until(t, addr, `grayfail_rdma_hw_events_total\{device="`+device+`",event="([^"]*)",port="1"\}`, want)
	}
}

// statistic is what iproute2 says of the counters of a device's port.
func statistic(t *testing.T, device string) map[string]float64 {
	t.Helper()
	var list []map[string]any
	if err := json.Unmarshal([]byte(testkit.Run(t, "rdma", "-j", "statistic", "show", "link", device+"/1")), &list); err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	out := make(map[string]float64)
	for name, value := range list[0] {
		if n, ok := value.(float64); ok && name != "port" {
			out[name] = n
		}
	}
	return out
}

// copyForAll copies a program to where every user may run it.
func copyForAll(t *testing.T, path string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "for-all-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, filepath.Base(path))
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(to, program, 0o755)); err != nil {
		t.Fatal(err)
	}
	return to
}
