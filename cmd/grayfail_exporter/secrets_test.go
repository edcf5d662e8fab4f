package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grayfail/internal/testkit"
)

// secrets are what a request and its answer hold that nobody else shall read.
var secrets = []string{"PROMPT-7f3a", "ANSWER-7f3a", "BEARER-7f3a", "QUERY-7f3a", "COOKIE-7f3a", "BROKEN-7f3a", "PASSWORD-7f3a", "LOGGED-7f3a"}

// TestNoSecretIsKept sends a prompt and keys through the proxy, the push API
// and an engine's log, with calls that succeed, fail and break off, and reads
// everything the exporter has written or answers.
func TestNoSecretIsKept(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.Contains(string(body), "PROMPT-7f3a") || r.Header.Get("Authorization") != "Bearer BEARER-7f3a" {
			t.Errorf("the upstream got %q, %v, %v", body, r.Header, err)
		}
		switch r.URL.Query().Get("case") {
		case "refused":
			http.Error(w, `{"error":{"message":"bad prompt PROMPT-7f3a ANSWER-7f3a"}}`, http.StatusBadRequest)
			return
		case "failed":
			http.Error(w, "ANSWER-7f3a PROMPT-7f3a", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Set-Cookie", "session=COOKIE-7f3a")
		for range 16 {
			fmt.Fprint(w, `data: {"model":"m","choices":[{"index":0,"delta":{"content":"ANSWER-7f3a"}}]}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		switch r.URL.Query().Get("case") {
		case "dies":
			panic(http.ErrAbortHandler)
		case "garbage":
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\": BROKEN-7f3a\n\n")
		default:
			fmt.Fprint(w, `data: {"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":16}}`+"\n\ndata: [DONE]\n\n")
		}
	}))
	defer upstream.Close()

	dir := t.TempDir()
	listen, dead, engineLog := testkit.FreeAddr(t), testkit.FreeAddr(t), filepath.Join(dir, "engine.log")
	if err := os.WriteFile(engineLog, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(dir, "written")
	if err := os.Mkdir(written, 0o700); err != nil {
		t.Fatal(err)
	}
	config := writeFile(t, fmt.Sprintf(`requests:
  push: {enabled: true}
  proxies:
  - {name: main, listen: %q, upstream: "%s"}
  - {name: dead, listen: %q, upstream: "http://user:PASSWORD-7f3a@%s"}
  llama_logs: [{name: srv, path: %s}]
`, listen, upstream.URL, dead, testkit.FreeAddr(t), engineLog))
	e := startExporter(t, "--config.file", config, "--log.level", "debug", "--state.dir", filepath.Join(written, "state"),
		"--state.interval", "50ms", "--record", filepath.Join(written, "recording.jsonl.gz"))

	for _, kind := range []string{"whole", "refused", "failed", "dies", "garbage"} {
		ask(t, "http://"+listen+"/v1/chat/completions?api_key=QUERY-7f3a&case="+kind)
	}
	ask(t, "http://"+dead+"/v1/chat/completions?api_key=QUERY-7f3a")
	logged := "main: prompt: LOGGED-7f3a\nslot print_timing: id 0 | task 0 | LOGGED-7f3a\nLOGGED-7f3a"
	if err := os.WriteFile(engineLog, []byte(logged), 0o600); err != nil {
		t.Fatal(err)
	}
	e.post("/api/v1/requests", `{"model":"m","prompt":"PROMPT-7f3a","decode_tokens_per_second":9,"generated_tokens":16}`+"\n{\"prompt\":\"BROKEN-7f3a\n")
	eventually(t, func() error {
		_, page := e.get("/metrics")
		for _, want := range []string{`{model="m",outcome="ok",source="main"} 1`, `outcome="error",source="main"}`, `{model="m",outcome="ok",source="push"} 1`} {
			if !strings.Contains(page, "grayfail_requests_total"+want) && !strings.Contains(grep(page, "grayfail_requests_total"), want) {
				return fmt.Errorf("no %s in:\n%s", want, grep(page, "grayfail_requests_total"))
			}
		}
		return nil
	})
	said := map[string]string{}
	for _, path := range []string{"/", "/metrics", "/api/v1/legs", "/api/v1/requests", "/api/v1/episodes", "/api/v1/baselines"} {
		code, body := e.get(path)
		if code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
		said["GET "+path] = body
	}
	if code := e.stop(); code != exitOK {
		t.Errorf("exit %d", code)
	}
	said["the log"] = e.log.String()
	err := filepath.WalkDir(written, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			said[strings.TrimPrefix(path, written)] = path + "\n" + readFile(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if recorded := said["/recording.jsonl.gz"]; !strings.Contains(recorded, `"source":"main"`) {
		t.Errorf("the recording holds no request of the proxy:\n%s", recorded)
	}
	if len(said) < 9 {
		t.Errorf("only %d things were read", len(said))
	}
	for what, text := range said {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %s:\n%s", what, secret, text)
			}
		}
	}
}

// ask sends a prompt with everything secret that a client sends.
func ask(t *testing.T, url string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url,
		strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"PROMPT-7f3a"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer BEARER-7f3a")
	req.Header.Set("Cookie", "session=COOKIE-7f3a")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // one of them breaks off
	_ = resp.Body.Close()
}

// readFile reads a file, through gzip if it is that.
func readFile(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
