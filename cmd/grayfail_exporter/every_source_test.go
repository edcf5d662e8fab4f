package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"grayfail/event"
	"grayfail/internal/testkit"
)

// TestEverySource runs the exporter as its users do, a process of its own with
// every source of requests: a proxy in front of an engine that answers in all
// the ways that engines do, a log of each generation of llama-server, and
// traces. What passes the proxy is the same as without it, every request has
// its outcome and its rate, and SIGTERM ends it within 8 s with a stream open.
func TestEverySource(t *testing.T) {
	dir, listen, traces, engine := t.TempDir(), testkit.FreeAddr(t), testkit.FreeAddr(t), scripted(t)
	oldLog, newLog, recording := filepath.Join(dir, "old.log"), filepath.Join(dir, "new.log"), filepath.Join(dir, "rec.jsonl")
	config := writeFile(t, fmt.Sprintf(`requests:
  proxies: [{name: main, listen: %q, upstream: "http://%s"}]
  llama_logs: [{name: old, path: %s, model: m}, {name: new, path: %s, model: m}]
  otlp: {http: %q}
`, listen, engine.address, oldLog, newLog, traces))
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := testkit.Start(t, "env", "GRAYFAIL_EXPORTER_MAIN=1", program, "serve",
		"--web.listen-address", "127.0.0.1:0", "--sample.interval", "50ms", "--config.file", config, "--record", recording)
	e := attached(t, d)

	var sent, got span
	for _, answer := range answers {
		t.Run(answer.model, func(t *testing.T) {
			direct, _, _ := engine.ask(t, engine.address, answer)
			through, atEngine, atClient := engine.ask(t, listen, answer)
			if direct != through {
				t.Errorf("direct:\n%s\nthrough:\n%s", direct, through)
			}
			if answer.model == counted {
				sent, got = atEngine, atClient
			}
		})
	}
	for from, to := range map[string]string{"composed/server-b7099.log": oldLog, "llama.cpp-0.7.0-b11669/server-two-slots.log": newLog} {
		log, err := os.ReadFile(filepath.Join("../../collector/llamalog/testdata", from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, log, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	export, err := proto.Marshal(vLLMSpan(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	postSpan(t, traces, "application/x-protobuf", export)
	e.counts(map[string]int{
		"main " + counted + " ok": 1, "main timed ok": 1, "main failing error": 1, "main cut error": 1, "main refused error": 1, "main left canceled": 1,
		"old m ok": 3, "old m canceled": 1, "old m error": 1,
		"new m ok": 7, "new m canceled": 1, "new m error": 1,
		"otlp unknown ok": 2,
	})

	endless := engine.open(t.Context(), t, listen, "left")
	defer endless.Body.Close()
	limit, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	if err := syscall.Kill(d.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.Exited:
	case <-limit.Done():
		t.Fatal("8 s after SIGTERM it still runs")
	}
	found := recorded(t, recording)
	for name, want := range map[string]string{
		"main timed":   "ok, prompt 100 (10 cached), generated 60, prefill 2000, decode 25",
		"main failing": "error, generated 3, low confidence",
		"main cut":     "error, generated 3, low confidence",
		"main refused": "error 500",
		"main left":    "canceled, generated 3, low confidence",
		"otlp unknown": "ok, prompt 200, generated 41, decode 20, first token 500 ms",
		"old m":        "ok, prompt 29, generated 24, prefill 354.74, decode 85.727, first token 81.75 ms",
		"new m":        "ok, prompt 130, generated 24, prefill 281.42, decode 110.52, first token 461.94 ms",
	} {
		if got := show(found[name]); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	// A chunk passes the proxy between the engine's sending it and the client's
	// having it: these are the rates of the longest and the shortest time that
	// the proxy can have measured.
	least, most := 59/got.last.Sub(sent.first).Seconds(), 59/sent.last.Sub(got.first).Seconds()
	if r := found["main "+counted]; r.GeneratedTokens != 60 || r.PromptTokens != 30 || r.LowConfidence || r.DecodeRate < least || r.DecodeRate > most {
		t.Errorf("60 tokens in 20 chunks: %s, want a rate from %.6g to %.6g", show(r), least, most)
	}
}

// counts waits until the requests counted are those wanted, by source, model
// and outcome, and no others.
func (e *exporter) counts(want map[string]int) {
	e.t.Helper()
	eventually(e.t, func() error {
		_, page := e.get("/metrics")
		lines := grep(page, "grayfail_requests_total{")
		for what, n := range want {
			f := strings.Fields(what)
			if line := fmt.Sprintf("grayfail_requests_total{model=%q,outcome=%q,source=%q} %d\n", f[1], f[2], f[0], n); !strings.Contains(lines, line) {
				return fmt.Errorf("no %sin:\n%s", line, lines)
			}
		}
		if n := strings.Count(lines, "\n") - strings.Count(lines, " 0\n"); n != len(want) {
			return fmt.Errorf("%d kinds of requests, want %d:\n%s", n, len(want), lines)
		}
		return nil
	})
}

// recorded is the first request of each source and model in a recording, but
// for what hangs on our clock alone.
func recorded(t *testing.T, path string) map[string]event.Request {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := map[string]event.Request{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		record, err := event.ParseRecord(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		r, ok := record.(*event.Request)
		if !ok {
			continue
		}
		if r.Source == "main" {
			r.FirstTokenNS = 0
		}
		if r.LowConfidence {
			r.DecodeRate = 0
		}
		if name := r.Source + " " + r.Model; found[name].ID == "" {
			found[name] = *r
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}
