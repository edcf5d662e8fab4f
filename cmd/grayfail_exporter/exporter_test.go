package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"grayfail/internal/testkit"
)

// run is the program without giving up rights: they are those of all tests.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return program{}.run(ctx, args, stdout, stderr)
}

// exporter is one running exporter.
type exporter struct {
	t    testing.TB
	url  string
	log  *testkit.Buffer
	stop func() int // exit code
}

var listenLine = regexp.MustCompile(`"address":"([^"]+)","time":"[^"]*","message":"Listening on"`)

// startExporter runs serve in this process on a free loopback port.
func startExporter(t testing.TB, args ...string) *exporter {
	t.Helper()
	return startProgram(t, program{}, args...)
}

func startProgram(t testing.TB, p program, args ...string) *exporter {
	t.Helper()
	e := launch(t, p, args...)
	e.ready()
	return e
}

// launch does not wait until it serves.
func launch(t testing.TB, p program, args ...string) *exporter {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	e := &exporter{t: t, log: &testkit.Buffer{}}
	code := make(chan int, 1)
	go func() {
		code <- p.run(ctx, append([]string{"serve", "--web.listen-address", "127.0.0.1:0", "--sample.interval", "50ms"}, args...), io.Discard, e.log)
	}()
	e.stop = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { e.stop() })
	return e
}

func (e *exporter) ready() {
	e.t.Helper()
	eventually(e.t, func() error {
		m := listenLine.FindStringSubmatch(e.log.String())
		if m == nil {
			return fmt.Errorf("no listener yet:\n%s", e.log)
		}
		e.url = "http://" + m[1]
		if code, body := e.get("/-/ready"); code != http.StatusOK {
			return fmt.Errorf("not ready: %s", body)
		}
		return nil
	})
}

func (e *exporter) get(path string) (int, string) {
	resp, err := http.Get(e.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

func (e *exporter) post(path, body string) (int, string) {
	e.t.Helper()
	resp, err := http.Post(e.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// eventually waits for check to hold; its last error is the failure.
func eventually(t testing.TB, check func() error) {
	t.Helper()
	testkit.Eventually(t, time.Minute, check)
}

func writeFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// copySelf puts the test binary where nobody may execute it.
func copySelf(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "gf-self-") //nolint:usetesting // nobody cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "grayfail_exporter")
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func grep(text, part string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) && !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}
