package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"grayfail/collector/engine"
	"grayfail/collector/llamalog"
	"grayfail/collector/otlp"
	"grayfail/event"
	"grayfail/internal/testkit"
)

// TestEngines keeps docs/engines.md what the code makes of the corpus. How
// reads are split and where they stop is tested beside each parser.
func TestEngines(t *testing.T) {
	const path = "../../docs/engines.md"
	want := enginesTable(t)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s differs from what the code does: go test ./cmd/grayfail_exporter -run TestEngines -update", path)
	}
}

const enginesIntro = `# What each engine's answer comes to

Made from the corpus by a test, which fails when a record is not the expected one or when this page differs. ` +
	"`captured`: bytes that an engine sent; `composed`: written by hand after its sources, which could not be run here.\n" + `
Every answer passes the proxy unchanged, in one write and in a write for each byte. Every split of its reads gives the same record, and an answer that stops at any byte before its last choice has ended is never ok. Only what the times of the pieces tell is lost when all comes in one read: rates by our clock.

The rates of a phase are, in this order, by:

- **engine**: its own count and duration;
- **usage**: the engine's count of tokens and our clock, from the first piece with text to the last (prefill: from the request to the first; only where the engine says what was cached);
- **chunks**: pieces with text are counted, for want of anything better. Such a record is marked low-confidence, and never compared with one of the others.

Times are those of the test: the first piece comes 10 ms after the request, each further one 10 ms later. Rates are tokens per second.

## Answers

| engine | shape | bytes | rates by | expected | got |
|---|---|---|---|---|---|
`

const logsIntro = `
## Logs and traces

vLLM's and SGLang's own log lines are averages over all of the engine's requests and no request can be made of them: they are ignored and counted. OTLP comes by HTTP; gRPC takes the same way behind its listener.

| engine | source | bytes | expected | got |
|---|---|---|---|---|
`

func enginesTable(t *testing.T) string {
	const corpus = "../../collector/engine/testdata"
	var b strings.Builder
	b.WriteString(enginesIntro)
	line := func(cells ...string) {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	for _, a := range testkit.LoadAnswers(t, corpus) {
		want, got := show(wanted(a.Want)), show(observed(a.Call))
		if got != want {
			t.Errorf("%s, %s: %s, want %s", a.Engine, a.Shape, got, want)
		}
		by := a.DecodeFrom
		if a.PrefillFrom != "" && a.PrefillFrom != a.DecodeFrom {
			by = strings.TrimPrefix(by+", prefill: "+a.PrefillFrom, ", ")
		}
		line(a.Engine, a.Shape, provenance(a.Source), by, want, got)
	}
	b.WriteString(logsIntro)
	for _, l := range engineLogs() {
		log, err := os.ReadFile(filepath.Join("../../collector/llamalog/testdata", l.file))
		if err != nil {
			t.Fatal(err)
		}
		found := followed(log, len(log))
		if l.nth >= len(found) && l.want != "" {
			t.Errorf("%s, %s: %d requests", l.engine, l.shape, len(found))
			continue
		}
		got := "no request"
		if len(found) > 0 {
			got = show(found[l.nth])
		}
		if byByte := followed(log, 1); len(byByte) != len(found) {
			t.Errorf("%s: %d requests, byte by byte %d", l.file, len(found), len(byByte))
		}
		if l.want == "" {
			l.want = "no request"
		}
		if got != l.want {
			t.Errorf("%s, %s: %s, want %s", l.engine, l.shape, got, l.want)
		}
		line(l.engine, l.shape, provenance(l.file), l.want, got)
	}
	for _, s := range []struct{ engine, file, contentType, want string }{
		{"vLLM", "vllm-llm_request.pb", "application/x-protobuf", "ok, prompt 200, generated 41, decode 20, first token 500 ms"},
		{"vLLM", "vllm-llm_request.json", "application/json", "ok, prompt 200, generated 41, decode 20, first token 500 ms"},
		{"GenAI conventions of 2024", "genai-2024-completion_tokens.pb", "application/x-protobuf", "ok, prompt 30, generated 20"},
		{"GenAI conventions of 2026", "genai-2026-input_tokens.json", "application/json", "ok, prompt 100 (64 cached), generated 41, prefill 40, decode 20, first token 1000 ms"},
	} {
		got := show(traced(t, s.file, s.contentType))
		if got != s.want {
			t.Errorf("%s: %s, want %s", s.file, got, s.want)
		}
		line(s.engine, "OTLP span, "+strings.TrimPrefix(s.contentType, "application/"), "composed", s.want, got)
	}
	return b.String()
}

// provenance of bytes: "captured, VERSION" or "composed".
func provenance(source string) string {
	if strings.HasPrefix(source, "composed") {
		return "composed"
	}
	return "captured, 0.7.0 b11669"
}

// show writes a record for the table.
func show(r event.Request) string {
	parts := []string{string(r.Outcome)}
	if r.Status >= 300 {
		parts[0] += " " + strconv.Itoa(r.Status)
	}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if r.PromptTokens > 0 {
		add("prompt %d", r.PromptTokens)
	}
	if r.CachedTokens > 0 {
		parts[len(parts)-1] += fmt.Sprintf(" (%d cached)", r.CachedTokens)
	}
	if r.GeneratedTokens > 0 {
		add("generated %d", r.GeneratedTokens)
	}
	if r.PrefillRate > 0 {
		add("prefill %.5g", r.PrefillRate)
	}
	if r.DecodeRate > 0 {
		add("decode %.5g", r.DecodeRate)
	}
	if r.FirstTokenNS != 0 && r.StartNS != 0 {
		add("first token %g ms", float64((r.FirstTokenNS-r.StartNS)/1e4)/100)
	}
	if r.LowConfidence {
		add("low confidence")
	}
	return strings.Join(parts, ", ")
}

const corpusStartNS, corpusTickNS = int64(1_796_077_175_000_000_000), int64(10_000_000)

// observed replays a call: a piece each 10 ms.
func observed(c testkit.Call) event.Request {
	o := engine.NewObserver(engine.Call{ID: "ours", Source: "main", StartNS: corpusStartNS})
	o.RequestBody(c.Asked)
	o.Response(c.Status, c.Header)
	at := corpusStartNS
	for _, piece := range c.Pieces {
		at += corpusTickNS
		o.ResponseBody(piece, at)
	}
	ending := engine.EndedClean
	if c.Cut {
		ending = engine.EndedCut
	}
	return o.Finish(ending, at)
}

func wanted(w testkit.AnswerWant) event.Request {
	r := event.Request{
		StartNS: corpusStartNS, PromptTokens: w.PromptTokens, CachedTokens: w.CachedTokens, GeneratedTokens: w.GeneratedTokens,
		PrefillRate: w.PrefillRate, DecodeRate: w.DecodeRate, Outcome: event.Outcome(w.Outcome), LowConfidence: w.LowConfidence, Status: w.Status,
	}
	if w.FirstTokenMS != nil {
		r.FirstTokenNS = corpusStartNS + int64(*w.FirstTokenMS*1e6)
	}
	return r
}

type engineLog struct {
	engine, shape, file string
	nth                 int // of its requests
	want                string
}

func engineLogs() []engineLog {
	const server, cli = "llama-server", "llama-cli"
	const captured = "llama.cpp-0.7.0-b11669/"
	return []engineLog{
		{server, "log of 2026", captured + "server-no-prefix.log", 0, "ok, prompt 130, generated 12, prefill 366.15, decode 66.737"},
		{server, "log of 2026, two slots at once, since-start prefix", captured + "server-two-slots.log", 1, "ok, prompt 140, generated 90, prefill 359.26, decode 49.101"},
		{server, "log of 2026, coloured", captured + "server-colours.log", 1, "ok, prompt 143, generated 20, prefill 362.97, decode 62.964"},
		{server, "log of 2026, prompt cached", captured + "server-two-slots.log", 3, "ok, prompt 130 (129 cached), generated 16, prefill 277.78, decode 350.49"},
		{server, "log of 2026, router", captured + "server-router.log", 1, "ok, prompt 41, generated 12, prefill 733.98, decode 151.88"},
		{server, "log of 2026, worker killed", captured + "server-worker-died.log", 0, "error"},
		{server, "log of b7099 (2025)", "composed/server-b7099.log", 0, "ok, prompt 29, generated 24, prefill 354.74, decode 85.727"},
		{server, "log of b7099, client left", "composed/server-b7099.log", 3, "canceled"},
		{server, "log of b7099, error", "composed/server-b7099.log", 4, "error"},
		{server, "Docker json-file", "composed/docker-json-file.log", 0, "ok, prompt 50, generated 40, prefill 100, decode 20"},
		{server, "journalctl", "composed/journalctl-short.log", 0, "ok, prompt 50, generated 40, prefill 100, decode 20"},
		{cli, "2026", captured + "cli-single-turn.log", 0, "ok, prefill 854.5, decode 179.1"},
		{cli, "2024 (llama_perf_context_print)", "composed/cli-perf-context-2024.log", 0, "ok, prompt 16, generated 31, prefill 100, decode 20"},
		{cli, "2023 (llama_print_timings)", "composed/cli-print-timings-2023.log", 0, "ok, prompt 16, generated 31, prefill 100, decode 20"},
		{cli, "2026, worker dead", captured + "cli-worker-dead.log", 0, "error"},
		{"vLLM", "engine log", "composed/vllm-engine.log", 0, ""},
		{"SGLang", "engine log", "composed/sglang-batch.log", 0, ""},
	}
}

// followed reads a log in pieces of a size. Start and first token, which hang
// on when the pieces came, are left out.
func followed(log []byte, size int) []event.Request {
	p := llamalog.NewParser(llamalog.Config{Name: "log"}, true)
	var all []event.Request
	for at := 0; at < len(log); at += size {
		all = append(all, p.Feed(log[at:min(at+size, len(log))], corpusStartNS)...)
	}
	all = append(all, p.Close(corpusStartNS)...)
	for i := range all {
		all[i].StartNS, all[i].FirstTokenNS = 0, 0
	}
	return all
}

// traced exports a file as a client does and gives the first request in it.
func traced(t *testing.T, file, contentType string) event.Request {
	body, err := os.ReadFile(filepath.Join("../../collector/otlp/testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var found []event.Request
	r := otlp.New(otlp.Config{}, otlp.Hooks{
		Emit: func(r event.Request) { found = append(found, r) },
		Now:  func() time.Time { return time.Unix(1796040100, 0) }, // 100 s after the spans
	})
	request := httptest.NewRequest(http.MethodPost, "/v1/traces", strings.NewReader(string(body)))
	request.Header.Set("Content-Type", contentType)
	answer := httptest.NewRecorder()
	r.Handler().ServeHTTP(answer, request)
	if answer.Code != http.StatusOK || len(found) == 0 {
		t.Fatalf("%s: status %d, %d requests", file, answer.Code, len(found))
	}
	return found[0]
}
