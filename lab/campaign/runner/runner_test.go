package runner

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"grayfail/event"
	"grayfail/lab/campaign/folder"
	"grayfail/lab/campaign/report"
	"grayfail/lab/campaign/spec"
)

// bench is an engine that answers at a rate which the condition sets by a file,
// and a folder for the campaign.
type bench struct {
	t     *testing.T
	dir   string // of the condition's file
	out   string
	url   string
	calls atomic.Int32
	at    func(call int32) // before the answer
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), out: filepath.Join(t.TempDir(), "out"), at: func(int32) {}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b.at(b.calls.Add(1))
		rate := 100.0
		if _, err := os.Stat(filepath.Join(b.dir, "slow")); err == nil {
			rate = 20
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"content":"x","timings":{"predicted_n":32,"predicted_ms":%g,"prompt_n":5,"prompt_ms":10}}`, 32/rate*1e3)
	}))
	t.Cleanup(s.Close)
	b.url = s.URL + "/completion"
	return b
}

// text of a specification with a condition that touches a file, and a counter
// that counts lines of another.
func (b *bench) text(more string) []byte {
	return fmt.Appendf(nil, `version: 1
name: unit
blocks: 2
repeats: 2
request: {url: %q, body: '{"prompt":"x"}'}
rule: {control: none}
conditions:
- {name: none}
- {name: slow, apply: [touch, %[2]s/slow], clear: [rm, -f, %[2]s/slow], counter: [sh, -c, "cat %[2]s/count 2>/dev/null | wc -l; echo x >>%[2]s/count"]}
%[3]s`, b.url, b.dir, more)
}

func (b *bench) options(text []byte) Options {
	b.t.Helper()
	s, err := spec.Parse(text)
	if err != nil {
		b.t.Fatal(err)
	}
	return Options{Spec: s, Text: text, Dir: b.out, Log: b.t.Output()}
}

func (b *bench) results() *report.Results {
	b.t.Helper()
	res, err := folder.Load(b.out)
	if err != nil {
		b.t.Fatal(err)
	}
	return res
}

// clean holds that nothing of a condition is left.
func (b *bench) clean() {
	b.t.Helper()
	for _, path := range []string{filepath.Join(b.dir, "slow"), filepath.Join(b.out, active)} {
		if _, err := os.Stat(path); err == nil {
			b.t.Errorf("%s is left", path)
		}
	}
}

func (b *bench) records() []report.Run {
	b.t.Helper()
	f, err := os.Open(filepath.Join(b.out, folder.Runs))
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	runs, err := report.Read(f)
	if err != nil {
		b.t.Fatal(err)
	}
	return runs.Runs
}

func TestCampaign(t *testing.T) {
	b := newBench(t)
	if err := Run(t.Context(), b.options(b.text(""))); err != nil {
		t.Fatal(err)
	}
	b.clean()
	runs := b.records()
	if len(runs) != 8 {
		t.Fatalf("%d records", len(runs))
	}
	for _, r := range runs {
		want := 100.0
		if r.Condition == "slow" {
			want = 20
		}
		q := r.Request
		if !r.Valid || q.Outcome != event.OutcomeOK || *q.Decode != want || *q.Tokens != 32 || *q.HTTPStatus != 200 || *q.Latency <= 0 || r.TCP == nil {
			t.Errorf("%+v %+v", r, q)
		}
		if (r.Injector != nil) != (r.Condition == "slow") || r.Injector != nil && !r.Injector.Acted {
			t.Errorf("%s: injector %+v", r.Condition, r.Injector)
		}
	}
	md, err := os.ReadFile(filepath.Join(b.out, folder.Report))
	if err != nil || !strings.Contains(string(md), "| slow") {
		t.Errorf("report: %v\n%s", err, md)
	}
	if err := Run(t.Context(), b.options(b.text(""))); err != nil { // nothing is left to play
		t.Fatal(err)
	}
	if n := b.calls.Load(); n != 8 {
		t.Errorf("%d requests in two starts of one campaign", n)
	}
}

// TestInterrupted: the condition is cleared, what was measured is kept as
// interrupted, and the same command goes on in the same order.
func TestInterrupted(t *testing.T) {
	b := newBench(t)
	o := b.options(b.text(""))
	first := o.Spec.Order()[0]
	second := o.Spec.Order()[1]
	ctx, cancel := context.WithCancel(t.Context())
	b.at = func(call int32) {
		if call == 4 { // the second repeat of the second slot
			cancel()
		}
	}
	if err := Run(ctx, o); err == nil || ctx.Err() == nil {
		t.Fatalf("Run: %v", err)
	}
	b.clean()
	b.at = func(int32) {}
	before := b.records()
	for i, r := range before {
		wantValid := i < 2
		wantCondition := first.Condition
		if !wantValid {
			wantCondition = second.Condition
		}
		if r.Valid != wantValid || r.Condition != wantCondition || !r.Valid && r.InvalidReason != interrupted {
			t.Errorf("record %d: %+v", i, r)
		}
	}
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	b.clean()
	var valid []report.Run
	for _, r := range b.records() {
		if r.Valid {
			valid = append(valid, r)
		}
	}
	for i, r := range valid {
		if slot := o.Spec.Order()[i/2]; r.Run != i || r.Condition != slot.Condition || r.Block != slot.Block {
			t.Errorf("valid record %d: run %d, %s of block %d; want %+v", i, r.Run, r.Condition, r.Block, slot)
		}
	}
	if len(valid) != 8 {
		t.Errorf("%d valid records of 8", len(valid))
	}
}

// TestKilled: what a kill -9 left in force is cleared by the next start, which
// says so, and a record that was cut is played again.
func TestKilled(t *testing.T) {
	b := newBench(t)
	o := b.options(b.text(""))
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	runs := filepath.Join(b.out, folder.Runs)
	data, err := os.ReadFile(runs)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	for path, text := range map[string]string{
		runs:                              strings.Join(lines[:6], "") + lines[6][:40],
		filepath.Join(b.dir, "slow"):      "",
		filepath.Join(b.out, active):      "\"slow\"\n",
		filepath.Join(b.out, "report.md"): "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var log strings.Builder
	o.Log = &log
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	b.clean()
	if !strings.Contains(log.String(), "condition slow was left in force by a start that was killed: clearing it") {
		t.Errorf("it says:\n%s", &log)
	}
	if res := b.results(); res.Made != 8 {
		t.Errorf("%d of 8 made", res.Made)
	}
}

// TestDidNotAct: such runs are kept, with the reason, and are in no figure.
func TestDidNotAct(t *testing.T) {
	b := newBench(t)
	text := []byte(strings.Replace(string(b.text("")), "wc -l; echo x >>", "wc -l; echo x >/dev/null; : ", 1))
	if err := Run(t.Context(), b.options(text)); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.records() {
		if (r.Condition == "slow") == r.Valid || !r.Valid && !strings.Contains(r.InvalidReason, "did not act") {
			t.Errorf("%s: valid %t, %q", r.Condition, r.Valid, r.InvalidReason)
		}
	}
}

// TestBroken: whatever cannot go on ends with a reason and a clean network.
func TestBroken(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(b *bench, text string) string
		before func(b *bench)
		want   string
	}{
		"a condition cannot be made": {change: func(_ *bench, s string) string { return strings.Replace(s, "apply: [touch,", "apply: [false,", 1) }, want: "slow: false "},
		"a counter is no number":     {change: func(_ *bench, s string) string { return strings.Replace(s, "counter: [sh,", "counter: [echo, sh,", 1) }, want: "not a number"},
		"the engine is not there":    {change: func(b *bench, s string) string { return strings.Replace(s, "blocks: 2", "warmup: 1\nblocks: 2", 1) }, before: func(b *bench) { b.at = func(int32) { panic(http.ErrAbortHandler) } }, want: "warm-up request 1 ended with error"},
		"the folder is another's": {change: func(_ *bench, s string) string { return s }, before: func(b *bench) {
			if err := os.MkdirAll(b.out, 0o755); err != nil {
				b.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(b.out, folder.Spec), []byte("version: 1\n"), 0o644); err != nil {
				b.t.Fatal(err)
			}
		}, want: "is of another specification"},
		"the folder is no campaign's": {change: func(_ *bench, s string) string { return s }, before: func(b *bench) {
			if err := os.MkdirAll(b.out, 0o755); err != nil {
				b.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(b.out, folder.Runs), nil, 0o644); err != nil {
				b.t.Fatal(err)
			}
		}, want: "no folder of a campaign"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if tt.before != nil {
				tt.before(b)
			}
			text := tt.change(b, string(b.text("")))
			if err := Run(t.Context(), b.options([]byte(text))); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			b.clean()
		})
	}
}

// TestTwoAtOnce: one folder, one campaign at a time.
func TestTwoAtOnce(t *testing.T) {
	b := newBench(t)
	o := b.options(b.text(""))
	b.at = func(call int32) {
		if call == 1 {
			if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "in use by another campaign") {
				t.Errorf("the second: %v", err)
			}
		}
	}
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}
