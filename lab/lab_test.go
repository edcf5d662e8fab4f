package lab_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
	"grayfail/lab"
)

// TestMain lets the test binary be the owner of a cluster that gets killed.
func TestMain(m *testing.M) {
	if instance := os.Getenv("GF_LAB_TEST_OWNER"); instance != "" {
		ownCluster(instance)
		return
	}
	os.Exit(m.Run())
}

// start brings up a cluster for one test and takes it down with it.
func start(t *testing.T, o lab.Options) *lab.Cluster {
	t.Helper()
	testkit.RequireRoot(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	c, err := lab.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

func request(t *testing.T, c *lab.Cluster) lab.Answer {
	t.Helper()
	a := c.Request(t.Context(), lab.RequestOptions{})
	if a.Err != nil {
		t.Fatalf("request: %v", a.Err)
	}
	return a
}

// leftovers lists what an instance has in sight of the machine: namespaces,
// mounts, links, and programs run from its folder or the engine's.
func leftovers(t *testing.T, instance string) []string {
	t.Helper()
	var found []string
	prefix := "gf-lab-" + instance + "-"
	for _, look := range [][]string{{"ip", "netns", "list"}, {"ip", "-o", "link"}, {"cat", "/proc/self/mountinfo"}} {
		for line := range strings.Lines(testkit.Run(t, look[0], look[1:]...)) {
			if strings.Contains(line, prefix) || strings.Contains(line, "to-rpc-") || strings.Contains(line, "/.lab/") {
				found = append(found, strings.Join(look, " ")+": "+line)
			}
		}
	}
	return found
}

func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func pids(t *testing.T, c *lab.Cluster) []int {
	t.Helper()
	all := []int{c.Server().PID()}
	for _, l := range c.Links {
		w, err := c.Worker(l.Leg)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w.PID())
	}
	return all
}

// TestLlama runs the real engine, twice from one unpacked folder, and finds
// nothing of it afterwards.
func TestLlama(t *testing.T) {
	for range 2 {
		c := start(t, lab.Options{Instance: "llama"})
		if !strings.HasPrefix(c.EngineVersion, "llama.cpp ") {
			t.Errorf("engine version %q", c.EngineVersion)
		}
		for range 3 {
			if a := request(t, c); a.Tokens != 32 || a.Rate() <= 0 {
				t.Errorf("answer with %d tokens, %g tok/s; want 32 and a rate", a.Tokens, a.Rate())
			}
		}
		for _, l := range c.Links {
			out, err := c.ExecIn(t.Context(), c.Coordinator, "ss", "-tinH", "dst", l.Peer().String())
			if err != nil || !strings.Contains(out, " "+lab.Congestion+" ") || strings.Count(out, "ESTAB") != 1 {
				t.Errorf("leg %s: want one connection with %s, got %v\n%s", l.Leg, lab.Congestion, err, out)
			}
		}
		owned := pids(t, c)
		if err := c.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
		for _, pid := range owned {
			if running(pid) {
				t.Errorf("pid %d still runs", pid)
			}
		}
		if left := leftovers(t, "llama"); left != nil {
			t.Errorf("left behind: %q", left)
		}
	}
}

// TestTwoAtOnce runs two clusters beside each other; the ratio of their rates
// is the inverse ratio of the token times they were given.
func TestTwoAtOnce(t *testing.T) {
	quick := start(t, lab.Options{Instance: "quick", Engine: lab.EngineStandin, Standin: lab.StandinShape{TokenTime: 10 * time.Millisecond}})
	slow := start(t, lab.Options{Instance: "slow", Engine: lab.EngineStandin, Standin: lab.StandinShape{TokenTime: 40 * time.Millisecond}})
	if !strings.Contains(quick.EngineVersion, "STAND-IN") {
		t.Errorf("the stand-in calls itself %q", quick.EngineVersion)
	}
	var best [2]float64
	for range 3 {
		for i, c := range []*lab.Cluster{quick, slow} {
			best[i] = max(best[i], request(t, c).Rate())
		}
	}
	if ratio := best[0] / best[1]; ratio < 3.4 || ratio > 4.6 {
		t.Errorf("rates %.1f and %.1f tok/s: ratio %.2f, want 4", best[0], best[1], ratio)
	}
	if _, err := lab.Start(t.Context(), lab.Options{Instance: "quick", Engine: lab.EngineStandin}); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("a second start of a running instance: error %v, want one that names the pid", err)
	}
	request(t, quick) // the refused start took nothing away
}

func TestRefusedOptions(t *testing.T) {
	for _, o := range []lab.Options{
		{Instance: "With-Dash"}, {Instance: "muchtoolong"},
		{Standin: lab.StandinShape{TokenTime: -1}},
	} {
		if c, err := lab.Start(t.Context(), o); err == nil {
			t.Errorf("Start(%+v) went well", o)
			c.Close()
		}
	}
}

// TestForward: a port of the host's loopback leads into the namespace, and
// ends with the cluster.
func TestForward(t *testing.T) {
	c := start(t, lab.Options{Instance: "forward", Engine: lab.EngineStandin})
	addr, err := c.Forward("127.0.0.1:0", fmt.Sprintf("127.0.0.1:%d", lab.EnginePort))
	if err != nil {
		t.Fatal(err)
	}
	other, err := c.Forward(addr, fmt.Sprintf("127.0.0.1:%d", lab.EnginePort))
	if err != nil || other == addr {
		t.Errorf("a port in use: got %s, %v; want another port", other, err)
	}
	for _, a := range []string{addr, other} {
		resp, err := http.Get("http://" + a + "/health")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", a, resp.Status)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("the port still answers after Close")
	}
}
