package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"grayfail/internal/testkit"
)

// pushed makes n request records at a decode rate.
func pushed(prefix string, n int, rate float64) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"id":"%s-%d","model":"m","generated_tokens":32,"decode_tokens_per_second":%g,"concurrency":1}`+"\n", prefix, i, rate)
	}
	return b.String()
}

func TestPushedSlowRequestIsFlagged(t *testing.T) {
	recording := filepath.Join(t.TempDir(), "rec.jsonl.gz")
	e := startExporter(t, "--config.file", writeFile(t, "requests: {push: {enabled: true}}"), "--record", recording)
	if code, body := e.post("/api/v1/requests", pushed("base", 10, 100)+pushed("slow", 1, 40)); code != http.StatusAccepted || body != "{\"accepted\":11}\n" {
		t.Fatalf("push: %d %s", code, body)
	}
	eventually(t, func() error {
		_, body := e.get("/metrics")
		for _, want := range []string{
			`grayfail_request_verdicts_total{model="m",phase="decode",source="push",verdict="unknown"} 10`,
			`grayfail_request_verdicts_total{model="m",phase="decode",source="push",verdict="slow"} 1`,
			`grayfail_requests_total{model="m",outcome="ok",source="push"} 11`,
		} {
			if !strings.Contains(body, want) {
				return fmt.Errorf("no %s in:\n%s", want, grep(body, "grayfail_request"))
			}
		}
		return nil
	})
	if _, body := e.get("/api/v1/requests?verdict=slow"); !strings.Contains(body, `"id":"slow-0"`) {
		t.Errorf("slow rows: %s", body)
	}
	if code, body := e.post("/api/v1/requests", "{\"model\":\"m\"}\n"); code != http.StatusBadRequest || !strings.Contains(body, "decode_tokens_per_second") {
		t.Errorf("bad line: %d %s", code, body)
	}
	if code := e.stop(); code != exitOK {
		t.Errorf("exit %d\n%s", code, e.log)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"replay", "--json", recording}, &out, &errs); code != exitOK || !strings.Contains(out.String(), `"slow-0"`) {
		t.Errorf("replay of the recording: %d %s %s", code, &errs, &out)
	}
}

func TestWritingIsOffByDefault(t *testing.T) {
	e := startExporter(t)
	for _, path := range []string{"/api/v1/requests", "/api/v1/baselines/adopt?model=m"} {
		if code, body := e.post(path, pushed("x", 1, 1)); code != http.StatusForbidden || !strings.Contains(body, "requests.push.enabled") {
			t.Errorf("POST %s: %d %s", path, code, body)
		}
	}
}

func TestReloadKeepsTheOldConfigurationOnError(t *testing.T) {
	path := writeFile(t, "requests: {push: {enabled: true}}")
	e := startExporter(t, "--config.file", path)
	change := func(text string, wantCode int, wantBody, wantMetric string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, body := e.post("/-/reload", ""); code != wantCode || !strings.Contains(body, wantBody) {
			t.Errorf("reload of %q: %d %s", text, code, body)
		}
		eventually(t, func() error {
			if _, body := e.get("/metrics"); !strings.Contains(body, wantMetric) {
				return fmt.Errorf("no %s", wantMetric)
			}
			return nil
		})
	}
	change("requests: {psh: 1}", http.StatusInternalServerError, "line 1: requests.psh: unknown field", "grayfail_config_last_reload_successful 0")
	if code, _ := e.post("/api/v1/requests", pushed("a", 1, 1)); code != http.StatusAccepted {
		t.Errorf("push after a failed reload: %d", code)
	}
	change("requests: {push: {enabled: false}}", http.StatusOK, "reloaded", "grayfail_config_last_reload_successful 1")
	if code, _ := e.post("/api/v1/requests", pushed("b", 1, 1)); code != http.StatusForbidden {
		t.Errorf("push after it was turned off: %d", code)
	}
}

func TestParallelScrapes(t *testing.T) {
	e := startExporter(t, "--config.file", writeFile(t, "requests: {push: {enabled: true}}"))
	e.post("/api/v1/requests", pushed("a", 50, 100))
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if code, body := e.get("/metrics"); code != http.StatusOK || !strings.Contains(body, "grayfail_build_info") {
				t.Errorf("scrape: %d", code)
			}
		})
	}
	wg.Wait()
}

// TestMetricsPassPromtool holds a full scrape against promtool check metrics,
// which must have nothing to say.
func TestMetricsPassPromtool(t *testing.T) {
	e := startExporter(t, "--config.file", writeFile(t, "requests: {push: {enabled: true}}"))
	e.post("/api/v1/requests", pushed("base", 10, 100)+pushed("slow", 3, 20))
	eventually(t, func() error {
		_, body := e.get("/metrics")
		if !strings.Contains(body, `verdict="slow"} 3`) {
			return fmt.Errorf("no slow verdicts yet")
		}
		return nil
	})
	_, body := e.get("/metrics")
	cmd := exec.Command("promtool", "check", "metrics")
	cmd.Stdin = strings.NewReader(body)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// TestUnprivilegedStart runs the exporter as nobody: what cannot run says why,
// the rest works, and a stop is clean.
func TestUnprivilegedStart(t *testing.T) {
	testkit.RequireRoot(t)
	self := copySelf(t)
	cmd := exec.Command(self, "serve", "--web.listen-address", "127.0.0.1:0", "--sample.interval", "50ms")
	cmd.Env = append(os.Environ(), "GRAYFAIL_EXPORTER_MAIN=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Pdeathsig: syscall.SIGKILL,
	}
	e := &exporter{t: t, log: &testkit.Buffer{}}
	cmd.Stderr = e.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e.stop = sync.OnceValue(func() int {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		return cmd.ProcessState.ExitCode()
	})
	t.Cleanup(func() { e.stop() })
	e.ready()
	eventually(t, func() error {
		_, body := e.get("/metrics")
		for _, want := range []string{
			`grayfail_collector_up{collector="tcp_events"} 0`,
			`grayfail_collector_problem_info{collector="tcp_events",reason="no_permission"} 1`,
			`grayfail_collector_up{collector="qdisc"} 1`,
			`grayfail_collector_up{collector="tcp_sockets"} 1`,
			`grayfail_qdisc_bytes_total`,
		} {
			if !strings.Contains(body, want) {
				return fmt.Errorf("no %s in:\n%s", want, grep(body, "collector"))
			}
		}
		return nil
	})
	if n := strings.Count(e.log.String(), `"collector":"tcp_events"`); n != 1 {
		t.Errorf("%d log lines about tcp_events, want 1:\n%s", n, e.log)
	}
	if code := e.stop(); code != exitOK {
		t.Errorf("exit %d\n%s", code, e.log)
	}
}

// TestEngineLogIsFollowed: requests of a log are judged, and a restart with
// the same state counts none of them twice.
func TestEngineLogIsFollowed(t *testing.T) {
	blocks, err := os.ReadFile("../../collector/llamalog/testdata/composed/server-b7099.log")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "llama-server.log")
	config := writeFile(t, fmt.Sprintf("requests: {llama_logs: [{name: srv, path: %s, model: m}]}", log))
	args := []string{"--config.file", config, "--state.dir", filepath.Join(dir, "state")}
	counted := func(e *exporter, want string) {
		t.Helper()
		eventually(t, func() error {
			_, body := e.get("/metrics")
			if got := grep(body, `grayfail_requests_total{model="m",outcome="ok",source="srv"}`); !strings.HasSuffix(got, want) {
				return fmt.Errorf("counted %q, want %s; %s", got, want, grep(body, "problem_info"))
			}
			return nil
		})
	}
	e := startExporter(t, args...)
	if err := os.WriteFile(log, blocks, 0o600); err != nil {
		t.Fatal(err)
	}
	n := strings.Count(string(blocks), "prompt eval time")
	counted(e, fmt.Sprintf(" %d\n", n))
	if code := e.stop(); code != exitOK {
		t.Fatalf("exit %d\n%s", code, e.log)
	}
	e = startExporter(t, args...)
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(blocks); err != nil {
		t.Fatal(err)
	}
	counted(e, fmt.Sprintf(" %d\n", n)) // of the new part alone
}

// TestNotReadyWhileStreamsDrain: whoever balances load must look elsewhere as
// soon as the exporter stops, and not when the last stream has ended.
func TestNotReadyWhileStreamsDrain(t *testing.T) {
	arrived, released := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-released
	}))
	defer upstream.Close()
	defer release()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	_ = listener.Close()
	e := startExporter(t, "--config.file", writeFile(t, fmt.Sprintf("requests: {proxies: [{name: p, listen: %q, upstream: %q}]}", addr, upstream.URL)))
	answered := make(chan error, 1)
	go func() {
		resp, err := http.Get("http://" + addr + "/v1/models")
		if err == nil {
			_ = resp.Body.Close()
		}
		answered <- err
	}()
	<-arrived
	stopped := make(chan int, 1)
	go func() { stopped <- e.stop() }()
	eventually(t, func() error {
		if code, body := e.get("/-/ready"); code != http.StatusServiceUnavailable {
			return fmt.Errorf("%d %s while stopping", code, body)
		}
		return nil
	})
	release()
	if err := <-answered; err != nil {
		t.Errorf("the stream in flight: %v", err)
	}
	if code := <-stopped; code != exitOK {
		t.Errorf("exit %d\n%s", code, e.log)
	}
}
