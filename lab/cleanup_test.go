package lab_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"grayfail/internal/testkit"
	"grayfail/lab"
)

// ownCluster starts a cluster with a fault and a stopped worker, says which
// processes it has, and waits for its end.
func ownCluster(instance string) {
	ctx := context.Background()
	c, err := lab.Start(ctx, lab.Options{Instance: instance, Engine: lab.EngineStandin})
	if err == nil {
		var loss *lab.Loss
		if loss, err = c.NewLoss(lab.LegB, lab.Replies, 5); err == nil {
			err = c.Inject(ctx, loss)
		}
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	owned := []int{c.Server().PID()}
	for _, l := range c.Links {
		w, err := c.Worker(l.Leg)
		if err != nil {
			panic(err)
		}
		owned = append(owned, w.PID())
	}
	line, err := json.Marshal(owned)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
	select {}
}

// TestOwnerKilled: a SIGKILL takes the children along at once; names and rules
// go with the next start.
func TestOwnerKilled(t *testing.T) {
	testkit.RequireRoot(t)
	const instance = "killed"
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), "GF_LAB_TEST_OWNER="+instance)
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Clean(lab.Options{Instance: instance}); err != nil {
			t.Errorf("Clean: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var owned []int
	if err := json.Unmarshal([]byte(line), &owned); err != nil {
		_ = owner.Process.Kill()
		t.Fatalf("owner said %q", line)
	}
	for _, pid := range owned {
		if !running(pid) {
			t.Errorf("pid %d does not run", pid)
		}
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait() // ended by the signal
	wait(t, "the children's end", func() bool {
		for _, pid := range owned {
			if running(pid) {
				return false
			}
		}
		return true
	})
	if left := leftovers(t, instance); len(left) == 0 {
		t.Error("nothing was left by the kill: this test shows nothing")
	}

	c := start(t, lab.Options{Instance: instance, Engine: lab.EngineStandin})
	rules, err := c.ExecIn(t.Context(), c.Coordinator, "nft", "list", "ruleset")
	if err != nil || strings.TrimSpace(rules) != "" {
		t.Errorf("rules in the new namespace: %v %q", err, rules)
	}
	request(t, c)
	if err := c.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if left := leftovers(t, instance); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// TestFailedStart: an engine that cannot come up leaves nothing.
func TestFailedStart(t *testing.T) {
	testkit.RequireRoot(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lab.Start(ctx, lab.Options{Instance: "failed", Engine: lab.EngineStandin}); err == nil {
		t.Error("Start went well with an ended context")
	}
	if left := leftovers(t, "failed"); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// TestNoSuite: without the suite the error says what to do, and a half-made
// folder does not pass for an engine.
func TestNoSuite(t *testing.T) {
	testkit.RequireRoot(t)
	dir := t.TempDir()
	half := dir + "/engine/usr/bin"
	if err := os.MkdirAll(half, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SUITE", "no-such-suite")
	_, err := lab.Start(t.Context(), lab.Options{Instance: "nosuite", Dir: dir})
	if err == nil {
		t.Fatal("Start went well without a suite")
	}
	for _, want := range []string{"engine: the real llama.cpp could not be unpacked: ", "; set ENGINE=standin to run the labelled stand-in"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
	if _, err := os.Stat(half); err == nil {
		t.Error("the half-made folder was kept")
	}
	if left := leftovers(t, "nosuite"); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !done(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
