//go:build guest

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
	"grayfail/lab/vm/rdmalab"
)

// statesConfig lists queue pairs as often as may be.
const statesConfig = `rdma: {queue_pairs_interval: 1s}
requests: {push: {enabled: true}}
`

// serveWith starts the exporter with a configuration, sampling twice a second.
func serveWith(t *testing.T, config string, args ...string) (addr string, d *testkit.Daemon) {
	t.Helper()
	addr = testkit.FreeAddr(t)
	args = append([]string{"serve", "--web.listen-address", addr, "--sample.interval", "500ms", "--config.file", writeFile(t, config)}, args...)
	return addr, testkit.Start(t, exporterPath(t), args...)
}

// legsOf asks a running exporter for the legs by name, servers' too.
func legsOf(addr string) (map[string]*guestLeg, error) {
	r, err := http.Get("http://" + addr + "/api/v1/legs")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	var doc struct{ Legs []*guestLeg }
	if err := json.NewDecoder(r.Body).Decode(&doc); err != nil {
		return nil, err
	}
	out := make(map[string]*guestLeg)
	for _, l := range doc.Legs {
		out[l.Leg] = l
	}
	return out, nil
}

// becomes waits until a leg stands as wanted: "transport reason device/port".
func becomes(t *testing.T, addr, leg, want string) {
	t.Helper()
	testkit.Eventually(t, time.Minute, func() error {
		legs, err := legsOf(addr)
		switch l := legs[leg]; {
		case err != nil:
			return err
		case l == nil:
			return fmt.Errorf("no leg %s", leg)
		case l.words() != want:
			return fmt.Errorf("%s is %q, want %q", leg, l.words(), want)
		}
		return nil
	})
}

func legAt(n int) string { return fmt.Sprintf("10.9.100.%d:50052", n) }

// TestGuestStates: one leg in each state of the decision table that two
// devices and their processes can be brought to, all at one time.
func TestGuestStates(t *testing.T) {
	one, two, three, plain := netip.MustParseAddr("10.9.1.1"), netip.MustParseAddr("10.9.2.1"), netip.MustParseAddr("10.9.3.1"), netip.MustParseAddr("10.9.5.1")
	rdmalab.Netdev(t, "tp1", one.String()+"/24")
	rdmalab.Netdev(t, "tp2", two.String()+"/24")
	rdmalab.Netdev(t, "plain", plain.String()+"/24")
	device := rdmalab.TwoPort(t, "tp1", "tp2")
	rdmalab.Veth(t, "ve1", "ve2")
	rdmalab.Up(t, "ve1", three.String()+"/24")
	testkit.Run(t, "ip", "neigh", "replace", "10.9.3.2", "lladdr", "02:00:00:00:00:02", "dev", "ve1")
	rdmalab.RXE(t, "rxe0", "ve1")
	worker(t, 16)
	addr, _ := serveWith(t, statesConfig)

	// leg opens leg n of an agent; with payload if there is any.
	leg := func(a *rdmalab.Agent, n int, local netip.Addr, payload int) {
		t.Helper()
		connect(a, n, local.String())
		if payload > 0 {
			a.Do("exchange %d %d", n, payload)
		}
	}
	const payload = 100_000

	idle := rdmalab.Start(t)
	leg(idle, 1, three, 0)
	design := rdmalab.Start(t)
	leg(design, 2, plain, payload)
	opted := rdmalab.Start(t, "GGML_RPC_NO_RDMA=1")
	leg(opted, 3, three, payload)
	other := rdmalab.Start(t, "GGML_RDMA_DEV="+device)
	leg(other, 4, three, payload)
	path := os.Getenv("VM_AGENT")
	t.Setenv("VM_AGENT", copyForAll(t, path))
	locked := rdmalab.StartAs(t, 65534)
	locked.Do("memlock %d", 8<<20)
	locked.Do("register rxe0 %d", 6400<<10)
	locked.Ready("a", "rxe0", 1, three, netip.MustParseAddr("10.9.3.2"), 105)
	leg(locked, 5, three, 0)
	leg(locked, 6, three, payload)
	t.Setenv("VM_AGENT", path)
	down := rdmalab.Start(t)
	leg(down, 7, two, payload)
	queue := rdmalab.Start(t)
	rdmalab.Up(t, "workers", "10.9.101.1/32")
	queue.Do("listen 10.9.101.1:50052")
	queued := rdmalab.Start(t)
	queued.Do("pair q rxe0")
	queued.Do("dial 8 %s 10.9.101.1:50052", three)
	queued.Do("send 8 33")
	half := rdmalab.Start(t)
	leg(half, 9, plain, payload)
	stuck := rdmalab.Start(t)
	connect(stuck, 16, plain.String())
	stuck.Do("send 16 %d", payload) // and never reads what comes back
	rdmalab.Up(t, "workers", "10.9.102.1/32")
	random := rdmalab.Start(t)
	random.Do("serve 10.9.102.1:45001")
	nccl := rdmalab.Start(t)
	nccl.Do("dial r %s 10.9.102.1:45001", three)
	nccl.Do("exchange r %d", payload)

	for _, c := range []struct{ name, leg, want string }{
		{"idle", legAt(1), "idle  rxe0/1"},
		{"tcp_by_design", legAt(2), "tcp  /0"},
		{"opted_out", legAt(3), "fallback opted_out rxe0/1"},
		{"opted_out of this device", legAt(4), "fallback opted_out rxe0/1"},
		{"rdma beside memlock", legAt(5), "rdma  rxe0/1"},
		{"memlock", legAt(6), "fallback memlock rxe0/1"},
		{"port 2, while it is up", legAt(7), "fallback port_not_probed " + device + "/2"},
		{"queued", "10.9.101.1:50052", "queued hello_unanswered rxe0/1"},
		{"half_open, before", legAt(9), "tcp  /0"},
		{"found by its RDMA address", "10.9.102.1:45001", "fallback no_queue_pair rxe0/1"},
	} {
		t.Run(c.name, func(t *testing.T) { becomes(t, addr, c.leg, c.want) })
	}
	t.Run("port_down", func(t *testing.T) {
		testkit.Run(t, "ip", "link", "set", "tp2", "down")
		becomes(t, addr, legAt(7), "fallback port_down "+device+"/2")
	})
	t.Run("half_open", func(t *testing.T) {
		testkit.Run(t, "nft", "add table ip gf; add chain ip gf in { type filter hook input priority 0; }; add rule ip gf in ip saddr 10.9.100.9 drop; add rule ip gf in ip daddr 10.9.100.9 drop")
		t.Cleanup(func() { _ = exec.Command("nft", "delete", "table", "ip", "gf").Run() })
		half.Stop()
		becomes(t, addr, legAt(9), "half_open fin_unanswered /0")
	})
	t.Run("peer_without_rdma", func(t *testing.T) { peerWithoutRDMA(t, addr, three) })

	t.Run("stalled", func(t *testing.T) { becomes(t, addr, legAt(16), "stalled unread /0") })

	cmd := exec.Command(exporterPath(t), "legs")
	text, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitFail {
		t.Errorf("legs: %v, want exit 1", err)
	}
	t.Logf("\n%s", text)
}

// peerWithoutRDMA: the process makes a queue pair for a connection and takes it
// away, since the peer has none. Lists of queue pairs miss most of these: the
// engine is started until one is seen.
func peerWithoutRDMA(t *testing.T, addr string, local netip.Addr) {
	var got string
	for n := 10; n < 16; n++ {
		a := rdmalab.Start(t)
		connect(a, n, local.String())
		a.Do("pair p rxe0")
		const inReset = `device="rxe0",port="",state="RESET",type="RC"`
		testkit.Eventually(t, time.Minute, func() error {
			seen, err := scrape(addr, `grayfail_rdma_queue_pairs\{(`+inReset+`)\}`)
			if err == nil && seen[inReset] < 2 { // the queued leg has one
				err = fmt.Errorf("that of process %d is not listed: %v", a.PID, seen)
			}
			return err
		})
		a.Do("destroy p")
		a.Do("exchange %d 100000", n)
		testkit.Eventually(t, time.Minute, func() error {
			legs, err := legsOf(addr)
			if l := legs[legAt(n)]; err == nil && (l == nil || l.Transport != "fallback") {
				err = fmt.Errorf("%s is %+v", legAt(n), l)
			} else if err == nil {
				got = l.words()
			}
			return err
		})
		if got == "fallback peer_without_rdma rxe0/1" {
			return
		}
		a.Stop()
		t.Logf("try %d: %s", n, got)
	}
	t.Errorf("%s, want peer_without_rdma", got)
}

// TestGuestRetries: two legs over RDMA, and the counters of one port move while
// a request is slow: no exchange shows it, and the leg is named. The recording
// says the same.
func TestGuestRetries(t *testing.T) {
	one, two := netip.MustParseAddr("10.9.1.1"), netip.MustParseAddr("10.9.2.1")
	rdmalab.Netdev(t, "tp1", one.String()+"/24")
	rdmalab.Netdev(t, "tp2", two.String()+"/24")
	device := rdmalab.TwoPort(t, "tp1", "tp2")
	rdmalab.SetCounters(t, 1, [4]uint64{1, 2, 3, 4})
	rdmalab.SetCounters(t, 2, [4]uint64{5, 6, 7, 8})
	worker(t, 2)
	a := rdmalab.Start(t)
	a.Ready("one", device, 1, one, netip.MustParseAddr("10.9.1.2"), 101)
	a.Ready("two", device, 2, two, netip.MustParseAddr("10.9.2.2"), 102)
	connect(a, 1, one.String())
	connect(a, 2, two.String())
	recording := t.TempDir() + "/rec.jsonl"
	addr, exporter := serveWith(t, statesConfig, "--record", recording)
	becomes(t, addr, legAt(1), "rdma  "+device+"/1")
	becomes(t, addr, legAt(2), "rdma  "+device+"/2")

	push := func(id string, fromNS, toNS int64) {
		t.Helper()
		took := float64(toNS-fromNS) / 1e9
		body := fmt.Sprintf(`{"id":%q,"model":"m","start_ns":%d,"first_token_ns":%d,"end_ns":%d,"generated_tokens":32,"decode_tokens_per_second":%g,"concurrency":1}`,
			id, fromNS, fromNS, toNS, 32/took)
		r, err := http.Post("http://"+addr+"/api/v1/requests", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != http.StatusAccepted {
			t.Fatalf("push: %s", r.Status)
		}
	}
	start := time.Now().UnixNano()
	for i := range int64(12) {
		at := start - (20-i)*1e9
		push(fmt.Sprint("ok-", i), at, at+1e8) // 320 tok/s
	}
	rdmalab.SetCounters(t, 2, [4]uint64{45, 6, 16, 8})
	until(t, addr, `grayfail_rdma_hw_events_total\{device="`+device+`",event="(out_of_sequence|local_ack_timeout_err)",port="2"\}`, map[string]float64{"out_of_sequence": 45, "local_ack_timeout_err": 16})
	push("slow", start, max(time.Now().UnixNano(), start+2e9))

	type answer struct {
		Requests []struct {
			ID, Phase, Verdict, Cause, Leg, Detail string
		}
	}
	find := func(data answer) string {
		for _, r := range data.Requests {
			if r.ID == "slow" && r.Phase == "decode" {
				return fmt.Sprintf("%s %s %s: %s", r.Verdict, r.Cause, r.Leg, r.Detail)
			}
		}
		return ""
	}
	var said string
	testkit.Eventually(t, time.Minute, func() error {
		r, err := http.Get("http://" + addr + "/api/v1/requests?verdict=slow")
		if err != nil {
			return err
		}
		defer r.Body.Close()
		var data answer
		if err := json.NewDecoder(r.Body).Decode(&data); err != nil {
			return err
		}
		if said = find(data); said == "" {
			return errors.New("not judged yet")
		}
		return nil
	})
	t.Log(said)
	want := "slow loss " + legAt(2) + ": rdma: 40 out_of_sequence, 9 local_ack_timeout_err on port " + device + "/2"
	if len(said) < len(want) || said[:len(want)] != want {
		t.Errorf("%q, want %q", said, want)
	}
	exporter.Stop()
	out, err := exec.Command(exporterPath(t), "replay", "--json", recording).Output()
	if err != nil {
		t.Fatal(err)
	}
	var data answer
	if err := json.Unmarshal(out, &data); err != nil {
		t.Fatal(err)
	}
	if again := find(data); again != said {
		t.Errorf("replay says %q, live it was %q", again, said)
	}
}
