package runner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grayfail/event"
	"grayfail/internal/testkit"
	"grayfail/lab"
	"grayfail/lab/campaign/spec"
	"grayfail/lab/trial"
)

// TestLive plays a short campaign on the lab's stand-in (so that only the
// conditions make requests slow) with real packet loss and a real rate limit,
// kills it while a condition is in force, and goes on with it.
func TestLive(t *testing.T) {
	testkit.RequireRoot(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	binary := filepath.Join(t.TempDir(), "grayfail_exporter")
	testkit.Run(t, "go", "build", "-o", binary, "grayfail/cmd/grayfail_exporter")
	c, err := lab.Start(ctx, lab.Options{Instance: "camp", Engine: lab.EngineStandin})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := trial.StartExporter(ctx, c, trial.ExporterOptions{Binary: binary}); err != nil {
		t.Fatal(err)
	}
	var at [2]string
	for i, inside := range []string{trial.ExporterAddr, fmt.Sprintf("127.0.0.1:%d", lab.ProxyPort)} {
		if at[i], err = c.Forward("127.0.0.1:0", inside); err != nil {
			t.Fatal(err)
		}
	}
	link, err := c.Link(lab.LegB)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Appendf(nil, `version: 1
name: live
warmup: 12
blocks: 1
repeats: 3
timeout: 1m
exporter: http://%s
request: {url: "http://%s/completion", body: '{"prompt": "The capital of France is", "n_predict": 32}'}
rule: {control: none}
conditions:
- {name: none}
- {name: lossy, netns: %s, device: %s, drop_percent: 10, count_netns: %s}
- {name: narrow, netns: %s, device: %s, tbf: [rate, 20mbit, burst, 64kb, limit, 1mb]}
`, at[0], at[1], c.Coordinator, link.CoordinatorDevice, link.Worker, link.Worker, link.WorkerDevice)
	s, err := spec.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, out := filepath.Join(dir, "live.yml"), filepath.Join(dir, "out")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}

	// left names what the faults have left in the network.
	left := func() string {
		return testkit.Run(t, "ip", "netns", "exec", string(c.Coordinator), "nft", "list", "tables") +
			testkit.Run(t, "ip", "netns", "exec", string(link.Worker), "tc", "qdisc", "show", "dev", link.WorkerDevice)
	}
	clean := left()
	first := testkit.Start(t, binary, "campaign", "--spec", file, "--out", out)
	testkit.Eventually(t, time.Minute, func() error {
		if _, err := os.Stat(filepath.Join(out, active)); err != nil {
			return fmt.Errorf("%w; it said: %s", err, first.Output())
		}
		if left() == clean {
			return fmt.Errorf("no condition is in force; it said: %s", first.Output())
		}
		return nil
	})
	first.Kill()
	if left() == clean {
		t.Fatal("the kill left nothing: this test shows nothing")
	}

	var log strings.Builder
	if err := Run(ctx, Options{Spec: s, Text: text, Dir: out, Log: &log}); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	if got := left(); got != clean {
		t.Errorf("left behind:\n%s", got)
	}
	if !strings.Contains(log.String(), "left in force by a start that was killed: clearing it") {
		t.Errorf("the second start says:\n%s", &log)
	}
	b := &bench{t: t, out: out}
	slow := make(map[string]int)
	for _, r := range b.records() {
		if !r.Valid {
			t.Errorf("%s: %s", r.Condition, r.InvalidReason)
			continue
		}
		q := r.Request
		if q.Outcome != event.OutcomeOK || q.Decode == nil || q.Verdict == "" || q.Verdict == event.VerdictUnknown || r.TCP == nil {
			t.Errorf("%s: %+v", r.Condition, q)
		}
		if (r.Condition == "none") != (r.Qdisc == nil) || r.Qdisc != nil && *r.Qdisc.Packets == 0 {
			t.Errorf("%s: qdisc %+v", r.Condition, r.Qdisc)
		}
		if q.Verdict == event.VerdictSlow {
			slow[r.Condition]++
			if q.NamedLeg != lab.LegB || q.Excess == nil {
				t.Errorf("%s: %s named for %s", r.Condition, q.NamedLeg, q.Cause)
			}
		}
	}
	if slow["none"] != 0 || slow["lossy"] == 0 || slow["narrow"] == 0 {
		t.Errorf("slow: %v", slow)
	}
	if res := b.results(); res.Made != 9 {
		t.Errorf("%d of 9 made", res.Made)
	}
}
