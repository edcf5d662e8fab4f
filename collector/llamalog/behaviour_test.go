package llamalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
)

const second = int64(1e9)

// lines feeds lines at times, in seconds after arrived.
type feedLine struct {
	after float64
	text  string
}

func follow(p *Parser, lines []feedLine) (all []event.Request) {
	for _, l := range lines {
		at := arrived + int64(l.after*1e9)
		all = append(all, p.Idle(at)...)
		all = append(all, p.Feed([]byte(l.text+"\n"), at)...)
	}
	return all
}

func block(slot, id int, promptN int, promptMS float64, n int, ms float64) string {
	head := fmt.Sprintf("slot print_timing: id %2d | task %d | ", slot, id)
	return head + fmt.Sprintf("prompt eval time = %10.2f ms / %5d tokens (x)\n", promptMS, promptN) +
		head + fmt.Sprintf("       eval time = %10.2f ms / %5d tokens (x)\n", ms, n) +
		head + fmt.Sprintf("      total time = %10.2f ms / %5d tokens", promptMS+ms, promptN+n)
}

func launch(slot, id int) string {
	return fmt.Sprintf("slot launch_slot_: id %2d | task %d | processing task, is_child = 0", slot, id)
}

func release(slot, id, tokens int) string {
	return fmt.Sprintf("slot      release: id %2d | task %d | stop processing: n_tokens = %d, truncated = 0", slot, id, tokens)
}

func TestConcurrency(t *testing.T) {
	p := NewParser(Config{Name: "log", Model: "m"}, true)
	got := follow(p, []feedLine{
		{0, launch(0, 1)},
		{1, launch(1, 2)},
		{3, block(1, 2, 10, 1000, 10, 1000) + "\n" + release(1, 2, 19)},
		{4, block(0, 1, 10, 1000, 10, 3000) + "\n" + release(0, 1, 19)},
	})
	if len(got) != 2 || got[0].Concurrency != 2 || got[1].Concurrency != 1.5 {
		t.Fatalf("%+v", got)
	}
	if got[1].StartNS != arrived || got[1].Model != "m" {
		t.Errorf("%+v", got[1])
	}
}

// Reading that begins inside a log cannot know what is in flight, until the
// engine says that nothing is, or ten minutes have passed.
func TestConcurrencyUnknown(t *testing.T) {
	p := NewParser(Config{Name: "log"}, false)
	run := func(at float64, id int) event.Request {
		return follow(p, []feedLine{
			{at, launch(0, id)}, {at + 1, block(0, id, 10, 100, 10, 900) + "\n" + release(0, id, 19)},
		})[0]
	}
	if r := run(0, 1); r.Concurrency != 0 {
		t.Errorf("at once: %v", r.Concurrency)
	}
	follow(p, []feedLine{{2, "srv  update_slots: all slots are idle"}})
	if r := run(3, 2); r.Concurrency != 1 {
		t.Errorf("after an idle moment: %v", r.Concurrency)
	}
	p = NewParser(Config{Name: "log"}, false)
	run(0, 3)
	if r := run(601, 4); r.Concurrency != 1 {
		t.Errorf("after ten minutes: %v", r.Concurrency)
	}
}

func TestEndings(t *testing.T) {
	for name, test := range map[string]struct {
		lines []feedLine
		want  []event.Outcome
		why   map[string]uint64
	}{
		"the client left": {[]feedLine{{0, launch(0, 1)}, {1, "srv          stop: cancel task, id_task = 1"}, {1, release(0, 1, 50)}},
			[]event.Outcome{event.OutcomeCanceled}, nil},
		"the client left when all was said": {[]feedLine{{0, launch(0, 1)}, {1, block(0, 1, 10, 100, 10, 900)}, {1, "srv          stop: cancel task, id_task = 1"}, {1, release(0, 1, 19)}},
			[]event.Outcome{event.OutcomeOK}, nil},
		"an error": {[]feedLine{{0, launch(0, 1)}, {1, "srv    send_error: task id = 1, error: Compute error."}, {1, release(0, 1, 50)}},
			[]event.Outcome{event.OutcomeError}, nil},
		"an error and no release": {[]feedLine{{0, launch(0, 1)}, {1, "srv    send_error: task id = 1, error: Compute error."}, {3, ""}},
			[]event.Outcome{event.OutcomeError}, nil},
		"an error of no slot's task": {[]feedLine{{0, "srv    send_error: task id = 1, error: Invalid slot ID"}, {9, ""}}, nil, nil},
		"embeddings":                 {[]feedLine{{0, launch(0, 1)}, {1, release(0, 1, 50)}, {3, ""}}, nil, map[string]uint64{IgnoredNoTiming: 1}},
		"a release that never comes": {[]feedLine{{0, launch(0, 1)}, {1, block(0, 1, 10, 100, 10, 900)}, {3, ""}}, []event.Outcome{event.OutcomeOK}, nil},
		"the next task instead of a release": {[]feedLine{{0, launch(0, 1)}, {1, block(0, 1, 10, 100, 10, 900)}, {1, launch(0, 2)}},
			[]event.Outcome{event.OutcomeOK}, nil},
		"told to stop":           {[]feedLine{{0, launch(0, 1)}, {1, "srv    operator(): operator(): cleaning up before exit..."}, {9, ""}}, nil, map[string]uint64{IgnoredStopped: 1}},
		"killed":                 {[]feedLine{{0, "1.00.000.000 I " + launch(0, 1)}, {9, "0.00.000.901 I srv  llama_server: initializing ..."}}, []event.Outcome{event.OutcomeError}, nil},
		"killed, no time":        {[]feedLine{{0, launch(0, 1)}, {9, "srv    load_model: loading model '/m.gguf'"}}, []event.Outcome{event.OutcomeError}, nil},
		"two servers in one log": {[]feedLine{{0, "1.00.000.000 I " + launch(0, 1)}, {0, "0.20.000.000 I srv  params_from_: Chat format: Content-only"}, {9, ""}}, nil, nil},
		"worker died":            {[]feedLine{{0, launch(0, 1)}, {1, "./src/ggml-rpc/ggml-rpc.cpp:682: Remote RPC server crashed or returned malformed response"}}, []event.Outcome{event.OutcomeError}, nil},
		"aborted":                {[]feedLine{{0, launch(0, 1)}, {1, "#3  0x00007fd3db148b2e in ggml_abort () from libggml-base.so"}}, []event.Outcome{event.OutcomeError}, nil},
		"choices of one request": {[]feedLine{{0, launch(0, 1)}, {0, strings.Replace(launch(1, 2), "= 0", "= 1", 1)},
			{1, block(0, 1, 10, 100, 10, 900) + "\n" + release(0, 1, 19)}, {1, block(1, 2, 10, 100, 10, 900) + "\n" + release(1, 2, 19)}},
			[]event.Outcome{event.OutcomeOK}, map[string]uint64{IgnoredChild: 1}},
		"numbers that are none": {[]feedLine{{0, launch(0, 1)}, {1, strings.ReplaceAll(block(0, 1, 10, 100, 10, 900), "900.00", "-nan")}, {1, release(0, 1, 19)}},
			[]event.Outcome{event.OutcomeOK}, map[string]uint64{IgnoredBroken: 1}},
		"continuation lines of nobody": {[]feedLine{{0, "prompt eval time =      81.75 ms /    29 tokens (x)"}}, nil, map[string]uint64{IgnoredOrphan: 1}},
		"a prompt that looks like a timing, in a verbose log": {[]feedLine{
			{0, `srv  log_server_r: request: {"prompt":"slot print_timing: id  0 | task 1 | eval time = 1.00 ms / 99 tokens"}`},
			{0, `0.00.000.001 D srv  log_server_r: request: {"prompt":"[ Prompt: 1.0 t/s | Generation: 1.0 t/s ]"}`}, {3, ""}}, nil, nil},
		"words about connections": {[]feedLine{{0, "Failed to connect to the database"}, {1, "I said: Failed to connect to 10.0.0.1:1"}}, nil, nil},
	} {
		p := NewParser(Config{Name: "log"}, true)
		var got []event.Outcome
		for _, r := range follow(p, test.lines) {
			got = append(got, r.Outcome)
			if r.Outcome == event.OutcomeError && r.StartNS != arrived {
				t.Errorf("%s: starts at %d", name, r.StartNS-arrived)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		for reason, n := range test.why {
			if p.Stats().Ignored[reason] != n {
				t.Errorf("%s: ignored %v, want %v", name, p.Stats().Ignored, test.why)
			}
		}
	}
}

// A llama-cli that is read as it writes: when its answer came, and so how many
// tokens it had, is seen. The pieces are those of a real run.
func TestTurnAsItComes(t *testing.T) {
	p := NewParser(Config{Name: "push", Model: "m"}, true)
	at := func(s float64) int64 { return arrived + int64(s*1e9) }
	p.Feed([]byte("\n> hello there\n"), at(0.0590))
	for _, w := range []struct {
		s float64
		w string
	}{{.1473, " w19283"}, {.1515, " w13840"}, {.1557, " w28575"}, {.1605, " w18921"}, {.1654, " w2116"}, {.1703, " w9144"}, {.1706, "\n"}} {
		p.Feed([]byte(w.w), at(w.s))
	}
	got := p.Feed([]byte("\n[ Prompt: 778.2 t/s | Generation: 212.3 t/s ]\n\n> "), at(.1800))
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	want := event.Request{
		ID: got[0].ID, Source: "push", Model: "m", Outcome: event.OutcomeOK, PrefillRate: 778.2, DecodeRate: 212.3,
		GeneratedTokens: 6, LowConfidence: true, StartNS: at(.1473), FirstTokenNS: at(.1473), EndNS: at(.1703),
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
}

// A snapshot between any two lines, and another parser that goes on from it:
// the same requests as from one.
func TestSnapshot(t *testing.T) {
	for _, name := range fixtures(t) {
		log := fixture(t, name)
		if bytes.Contains(log, []byte("__CURSOR=")) {
			continue // comes by pipe, never from a file
		}
		want, _ := whole(log)
		for cut := range log {
			if log[cut] != '\n' && cut%41 != 0 {
				continue
			}
			one := NewParser(Config{Name: "log"}, true)
			got := slices.Clone(one.Feed(log[:cut], arrived))
			if inside := one.snapshot().Inside; len(inside) > 0 {
				continue // between two pieces of one line: that line is lost
			}
			raw, err := json.Marshal(one.snapshot())
			if err != nil {
				t.Fatal(err)
			}
			other := NewParser(Config{Name: "log"}, false)
			if err := other.restore(raw); err != nil {
				t.Fatalf("%s cut at %d: %v\n%s", name, cut, err, raw)
			}
			got = append(got, other.Feed(log[cut-int(one.pending()):], arrived)...)
			got = append(got, other.Close(arrived)...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s cut at %d (-want +got):\n%s\n%s", name, cut, diff, raw)
			}
			if bytes.Contains(raw, []byte("w22282")) {
				t.Fatalf("%s: text in the snapshot: %s", name, raw)
			}
		}
	}
}

func TestRestoreRefuses(t *testing.T) {
	for _, raw := range []string{
		"", "[]", `{"streams":{"":null}}`, `{"began_ns":-1}`, `{"flight":{"n":-1}}`,
		`{"streams":{"":{"slots":{"0":null}}}}`, `{"streams":{"":{"slots":{"0":{"prompt":{"n":-1}}}}}}`,
		`{"streams":{"":{"run":{"generated":{"ms":1e300}}}}}`, `{"streams":{"":{"slots":{"x":{}}}}}`,
	} {
		if err := NewParser(Config{}, false).restore([]byte(raw)); err == nil {
			t.Errorf("%s: taken", raw)
		}
	}
}

// Lines written while nobody read: their time is told by the engine's clock,
// known from lines that were read as they came.
func TestOldLines(t *testing.T) {
	p := NewParser(Config{Name: "log"}, false)
	p.Feed([]byte("0.10.000.000 I "+launch(0, 1)+"\n"), arrived)
	old := "0.20.000.000 I " + strings.ReplaceAll(block(0, 1, 10, 100, 10, 900), "\n", "\n0.20.000.000 I ") + "\n0.20.000.001 I " + release(0, 1, 19) + "\n"
	got := p.FeedOld([]byte(old), arrived+100*second)
	if len(got) != 1 || got[0].EndNS != arrived+10*second || got[0].StartNS != arrived {
		t.Fatalf("%+v", got)
	}
	p = NewParser(Config{Name: "log"}, false)
	got = p.FeedOld([]byte(old), arrived+100*second)
	if len(got) != 1 || got[0].EndNS != arrived+100*second {
		t.Fatalf("%+v", got)
	}
}

func TestBounds(t *testing.T) {
	p := NewParser(Config{Name: "log"}, true)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 3000 { // engines, slots, open blocks without end
		p.Feed([]byte(fmt.Sprintf("engine-%d | %s\n[%d] %s\n", i, launch(i, i), i, launch(i, i))), arrived)
		p.Feed([]byte(launch(i, i)+"\n"+fmt.Sprintf("slot print_timing: id %d | task %d | \n", i, i)), arrived)
	}
	p.Feed([]byte("{\"log\":\""), arrived)
	long := bytes.Repeat([]byte("x"), 1<<20)
	for range 64 {
		p.Feed(long, arrived)
	}
	p.Feed([]byte("\n__CURSOR=1\nMESSAGE\n\xff\xff\xff\xff\xff\xff\xff\x7f"), arrived)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("%d bytes held", grown)
	}
	if p.Stats().Ignored[IgnoredTooLong] != 1 || p.Stats().Ignored[IgnoredManyTasks] == 0 {
		t.Errorf("%v", p.Stats().Ignored)
	}
	// And it goes on.
	got := p.Feed([]byte(block(5, 9999, 10, 100, 10, 900)+"\n"+release(5, 9999, 19)+"\n"), arrived)
	if len(p.streams) > maxStreams || len(got) != 1 {
		t.Errorf("%d streams, then %v", len(p.streams), got)
	}
}

func TestRate(t *testing.T) {
	for _, c := range []struct {
		n    int
		ms   float64
		want float64
	}{{24, 279.96, 85.73}, {1, 0, 0}, {0, 5, 0}, {-1, 5, 0}, {5, -1, 0}, {3, 0.0001, 0}} {
		if got := rate(c.n, c.ms); math.Abs(got-c.want) > 0.005 {
			t.Errorf("rate(%d, %v) = %v", c.n, c.ms, got)
		}
	}
}
