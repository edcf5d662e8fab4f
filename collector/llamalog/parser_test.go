package llamalog

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
)

// What every fixture holds: id, model, outcome, prompt - cached tokens and
// their rate, tokens generated and their rate, requests in flight.
var inFixtures = map[string][]string{
	"llama.cpp-0.7.0-b11669/server-two-slots.log": {
		"task-0 lab-256x768x8 ok prompt 130-0 at 281.42 generated 24 at 110.52 of 1.00",
		"task-27 lab-256x768x8 ok prompt 140-0 at 359.26 generated 90 at 49.10 of 2.00",
		"task-25 lab-256x768x8 ok prompt 143-0 at 465.77 generated 120 at 51.04 of 1.84",
		"task-147 lab-256x768x8 ok prompt 130-129 at 277.78 generated 16 at 350.49 of 1.00",
		"task-164 lab-256x768x8 ok prompt 130-129 at 305.81 generated 16 at 240.31 of 1.00",
		"task-181 lab-256x768x8 ok prompt 130-0 at 256.11 generated 1 at 0.00 of 1.00",
		"task-183 lab-256x768x8 canceled prompt 0-0 at 0.00 generated 0 at 0.00 of 1.00",
		"task-249 lab-256x768x8 error prompt 0-0 at 0.00 generated 0 at 0.00 of 1.00",
		"task-252 lab-256x768x8 ok prompt 130-0 at 208.42 generated 20 at 51.26 of 1.00",
	},
	"llama.cpp-0.7.0-b11669/server-colours.log": {
		"task-0 lab-256x768x8 ok prompt 130-0 at 807.55 generated 12 at 182.45 of 1.00",
		"task-13 lab-256x768x8 ok prompt 143-0 at 362.97 generated 20 at 62.96 of 2.00",
		"task-14 lab-256x768x8 ok prompt 140-0 at 355.11 generated 20 at 62.99 of 2.00",
		"task-35 lab-256x768x8 canceled prompt 0-0 at 0.00 generated 0 at 0.00 of 1.00",
		"task-157 lab-256x768x8 ok prompt 130-0 at 703.69 generated 2 at 294.12 of 1.00",
	},
	"llama.cpp-0.7.0-b11669/server-jsonl.log": {
		"task-0 lab-256x768x8 ok prompt 130-0 at 638.32 generated 12 at 265.72 of 1.00",
		"task-13 lab-256x768x8 ok prompt 140-0 at 669.76 generated 20 at 48.32 of 1.66",
		"task-15 lab-256x768x8 ok prompt 143-0 at 750.54 generated 20 at 86.77 of 1.98",
		"task-154 lab-256x768x8 ok prompt 130-0 at 472.49 generated 2 at 193.42 of 2.00",
	},
	"llama.cpp-0.7.0-b11669/server-no-prefix.log": {
		"task-0 lab-256x768x8 ok prompt 130-0 at 366.15 generated 12 at 66.74",
		"task-13 lab-256x768x8 ok prompt 140-0 at 467.71 generated 20 at 48.31",
		"task-15 lab-256x768x8 ok prompt 143-0 at 941.16 generated 20 at 73.86",
		"task-36 lab-256x768x8 canceled prompt 0-0 at 0.00 generated 0 at 0.00",
		"task-112 lab-256x768x8 ok prompt 130-0 at 565.91 generated 2 at 227.01",
	},
	"llama.cpp-0.7.0-b11669/server-no-time.log": {
		"task-0 lab-256x768x8 ok prompt 130-0 at 516.71 generated 12 at 53.35",
		"task-13 lab-256x768x8 ok prompt 140-0 at 347.79 generated 20 at 38.61",
		"task-15 lab-256x768x8 ok prompt 143-0 at 563.77 generated 20 at 73.98",
		"task-52 lab-256x768x8 ok prompt 130-0 at 270.07 generated 2 at 228.83",
	},
	"llama.cpp-0.7.0-b11669/server-speculative.log": {
		"task-0 lab-256x768x8 ok prompt 130-0 at 399.57 generated 12 at 19.48 of 1.00",
		"task-14 lab-256x768x8 ok prompt 143-0 at 246.52 generated 200 at 6.88 of 2.00",
		"task-13 lab-256x768x8 ok prompt 140-0 at 241.46 generated 200 at 6.85 of 2.00",
		"task-214 lab-256x768x8 ok prompt 130-0 at 407.36 generated 2 at 11.65 of 2.00",
		"task-212 lab-256x768x8 canceled prompt 0-0 at 0.00 generated 0 at 0.00 of 1.27",
	},
	"llama.cpp-0.7.0-b11669/server-router.log": {
		"36703-task-0 alpha ok prompt 41-0 at 780.95 generated 12 at 144.44 of 1.00",
		"36825-task-0 beta ok prompt 41-0 at 733.98 generated 12 at 151.88 of 1.00",
		"36825-task-13 beta ok prompt 41-0 at 412.64 generated 40 at 100.20 of 1.30",
		"36703-task-13 alpha ok prompt 41-0 at 244.67 generated 40 at 104.86 of 1.27",
	},
	"llama.cpp-0.7.0-b11669/server-worker-died.log": {
		"task-0 lab-256x768x8 error prompt 0-0 at 0.00 generated 0 at 0.00",
	},
	"llama.cpp-0.7.0-b11669/cli-single-turn.log": {"run-1 unknown ok prompt 0-0 at 854.50 generated 0 at 179.10"},
	"llama.cpp-0.7.0-b11669/cli-worker-dead.log": {"run-1 unknown error prompt 0-0 at 0.00 generated 0 at 0.00"},
	"llama.cpp-0.7.0-b11669/cli-worker-died.log": {"run-1 unknown error prompt 0-0 at 0.00 generated 0 at 0.00"},
	"llama.cpp-0.7.0-b11669/completion.log":      {"run-1 unknown ok prompt 21-0 at 783.00 generated 23 at 84.25"},

	"composed/server-b7099.log": {
		"task-0 qwen2.5-0.5b ok prompt 29-0 at 354.74 generated 24 at 85.73",
		"task-25 qwen2.5-0.5b ok prompt 29-28 at 25.00 generated 32 at 32.00",
		"task-26 qwen2.5-0.5b ok prompt 84-0 at 400.00 generated 40 at 20.00",
		"task-70 qwen2.5-0.5b canceled prompt 0-0 at 0.00 generated 0 at 0.00",
		"task-90 qwen2.5-0.5b error prompt 0-0 at 0.00 generated 0 at 0.00",
	},
	"composed/server-2024-release-first.log": {"task-519 tiny ok prompt 339-0 at 100.00 generated 42 at 10.00"},
	"composed/server-headers-then-numbers.log": {
		"task-7 unknown ok prompt 100-0 at 1000.00 generated 20 at 20.00",
		"task-8 unknown ok prompt 100-0 at 500.00 generated 40 at 40.00",
	},
	"composed/server-2023.log":            {"run-1 unknown ok prompt 29-0 at 100.00 generated 24 at 10.00"},
	"composed/cli-print-timings-2023.log": {"run-1 unknown ok prompt 16-0 at 100.00 generated 31 at 20.00"},
	"composed/cli-perf-context-2024.log":  {"run-1 unknown ok prompt 16-0 at 100.00 generated 31 at 20.00"},
	"composed/cli-two-turns-then-sums.log": {
		"run-1 unknown ok prompt 0-0 at 402.60 generated 0 at 163.30",
		"run-2 unknown ok prompt 0-0 at 26.00 generated 0 at 150.00",
	},
	"composed/cli-worker-dead-old.log": {"run-1 unknown error prompt 0-0 at 0.00 generated 0 at 0.00"},
	"composed/docker-json-file.log": {
		"task-3 unknown ok prompt 50-0 at 100.00 generated 40 at 20.00 of 1.00",
		"task-9 unknown ok prompt 50-0 at 100.00 generated 20 at 20.00",
	},
	"composed/containerd-cri.log":       {"task-3 unknown ok prompt 50-0 at 100.00 generated 40 at 20.00"},
	"composed/compose.log":              {"llama-1-task-3 unknown ok prompt 50-0 at 100.00 generated 40 at 20.00"},
	"composed/journalctl-short.log":     {"task-3 unknown ok prompt 50-0 at 100.00 generated 40 at 20.00"},
	"composed/journalctl-short-iso.log": {"task-3 unknown ok prompt 50-0 at 100.00 generated 40 at 20.00"},
	"composed/journalctl-json.log":      {"task-3 unknown ok prompt 50-0 at 100.00 generated 40 at 20.00"},
	"composed/journalctl-export.log":    {"task-3 unknown ok prompt 50-0 at 100.00 generated 40 at 20.00"},
	"composed/journalctl-blobs.log":     nil,
	"composed/vllm-engine.log":          nil,
	"composed/sglang-batch.log":         nil,
}

func TestFixtures(t *testing.T) {
	for _, name := range fixtures(t) {
		want, known := inFixtures[name]
		if !known {
			t.Errorf("%s: nobody says what it holds", name)
			continue
		}
		var got []string
		found, _ := whole(fixture(t, name))
		for _, r := range found {
			got = append(got, show(r))
			checkTimes(t, name, r)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if len(fixtures(t)) != len(inFixtures) {
		t.Errorf("%d fixtures, %d expectations", len(fixtures(t)), len(inFixtures))
	}
}

// checkTimes: what every request must keep, whatever the log says.
func checkTimes(t testing.TB, name string, r event.Request) {
	t.Helper()
	if r.EndNS <= 0 || r.EndNS > arrived || r.StartNS > r.EndNS || r.FirstTokenNS > r.EndNS ||
		r.FirstTokenNS > 0 && r.StartNS > r.FirstTokenNS {
		t.Errorf("%s: %s: start %d first %d end %d", name, r.ID, r.StartNS, r.FirstTokenNS, r.EndNS)
	}
	if r.ID == "" || r.Source != "log" || r.Model == "" || r.CachedTokens > r.PromptTokens ||
		r.DecodeRate < 0 || r.DecodeRate > maxRate || r.PrefillRate < 0 || r.PrefillRate > maxRate {
		t.Errorf("%s: %+v", name, r)
	}
}

// The line's own time where it has one, else when it came; from there the
// engine's own spans lead back to the first token and the start.
func TestTimes(t *testing.T) {
	end := func(name string) event.Request {
		found, _ := whole(fixture(t, name))
		return found[0]
	}
	const second = int64(1e9)
	at := arrived - 97_500_000_000 // 12:00:02.5
	for _, name := range []string{
		"composed/docker-json-file.log", "composed/containerd-cri.log", "composed/journalctl-short-iso.log",
		"composed/journalctl-json.log", "composed/journalctl-export.log",
	} {
		r := end(name)
		if got := r.EndNS - at; got < 0 || got > 100_000 {
			t.Errorf("%s: ends %d ns after 12:00:02.5", name, got)
		}
		if r.EndNS-r.FirstTokenNS != 2*second || r.FirstTokenNS-r.StartNS < second/2 {
			t.Errorf("%s: start %d first %d end %d", name, r.StartNS, r.FirstTokenNS, r.EndNS)
		}
	}
	for _, name := range []string{"composed/compose.log", "composed/journalctl-short.log"} {
		if r := end(name); r.EndNS != arrived || r.FirstTokenNS != arrived-2*second || r.StartNS != arrived-5*second/2 {
			t.Errorf("%s: start %d first %d end %d", name, r.StartNS-arrived, r.FirstTokenNS-arrived, r.EndNS-arrived)
		}
	}
	if r := end("llama.cpp-0.7.0-b11669/server-two-slots.log"); r.EndNS != arrived || r.FirstTokenNS != arrived-217_160_000 {
		t.Errorf("server: first %d end %d", r.FirstTokenNS-arrived, r.EndNS-arrived)
	}
}

func TestIgnored(t *testing.T) {
	for name, want := range map[string]string{
		"composed/vllm-engine.log":                      IgnoredVLLM,
		"composed/sglang-batch.log":                     IgnoredSGLang,
		"composed/journalctl-blobs.log":                 IgnoredBlob,
		"composed/cli-two-turns-then-sums.log":          IgnoredSummary,
		"llama.cpp-0.7.0-b11669/cli-worker-dead.log":    IgnoredRepeated,
		"llama.cpp-0.7.0-b11669/server-no-time.log":     IgnoredStopped,
		"llama.cpp-0.7.0-b11669/server-speculative.log": "",
	} {
		_, stats := whole(fixture(t, name))
		if want == "" && len(stats.Ignored) > 0 || want != "" && stats.Ignored[want] == 0 {
			t.Errorf("%s: ignored %v, want %q", name, stats.Ignored, want)
		}
	}
}

// In whatever pieces a log comes, it says the same.
func TestPieces(t *testing.T) {
	for _, name := range fixtures(t) {
		log := fixture(t, name)
		want, _ := whole(log)
		step := 1 + len(log)/700
		for cut := 0; cut <= len(log); cut += step {
			p := NewParser(Config{Name: "log"}, true)
			got := slices.Clone(p.Feed(log[:cut], arrived))
			got = append(got, p.Feed(log[cut:], arrived)...)
			got = append(got, p.Close(arrived)...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s cut at %d (-want +got):\n%s", name, cut, diff)
			}
		}
		p := NewParser(Config{Name: "log"}, true)
		var got []event.Request
		for i := range log {
			got = append(got, p.Feed(log[i:i+1], arrived)...)
		}
		got = append(got, p.Close(arrived)...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s byte by byte (-want +got):\n%s", name, diff)
		}
		// With the line ends of another system.
		if bytes.Contains(log, []byte("__CURSOR=")) {
			continue // lengths count every byte there
		}
		got, _ = whole(bytes.ReplaceAll(log, []byte("\n"), []byte("\r\n")))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s with CRLF (-want +got):\n%s", name, diff)
		}
	}
}

// A log cut anywhere says less, never something else.
func TestCut(t *testing.T) {
	for _, name := range fixtures(t) {
		log := fixture(t, name)
		full := map[string]event.Request{}
		all, _ := whole(log)
		for _, r := range all {
			full[r.ID] = r
		}
		for cut := 0; cut < len(log); cut += 1 + len(log)/1500 {
			found, _ := whole(log[:cut])
			for _, r := range found {
				want, ok := full[r.ID]
				if !ok || r.Outcome != want.Outcome || r.DecodeRate != want.DecodeRate || r.PrefillRate != want.PrefillRate ||
					r.GeneratedTokens != want.GeneratedTokens {
					t.Fatalf("%s cut at %d: %s\nwhole: %s", name, cut, show(r), show(want))
				}
			}
		}
	}
}
