package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"grayfail/collector/proxy"
	"grayfail/internal/testkit"
)

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

func TestHalfAHeaderIsNotWaitedFor(t *testing.T) {
	t.Run("main listener", func(t *testing.T) { testkit.HalfHeader(t, newHTTPServer(http.HandlerFunc(ok), webLimits)) })
	t.Run("proxy", func(t *testing.T) { testkit.HalfHeader(t, proxy.NewServer(http.HandlerFunc(ok))) })
}

func TestHeaderAndBodyAreBounded(t *testing.T) {
	e := startExporter(t, "--config.file", writeFile(t, "requests: {push: {enabled: true}}"))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Large", strings.Repeat("x", webLimits.headerBytes+8192))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a large header: %s", resp.Status)
	}
	if code, body := e.post("/api/v1/requests", `{"model":"`+strings.Repeat("m", 17<<20)); code/100 != 4 {
		t.Errorf("a large push: %d %.200s", code, body)
	}
	if code, body := e.post("/api/v1/baselines/adopt", "model="+strings.Repeat("m", 5000)); code != http.StatusBadRequest {
		t.Errorf("a large form: %d %.200s", code, body)
	}
}

// TestConnectionsAreBounded: what is beyond the bound waits, and is served
// when another has gone.
func TestConnectionsAreBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	few := webLimits
	few.connections, few.header = 2, time.Hour
	server := newHTTPServer(http.HandlerFunc(ok), few)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(few.listener(l)) }()
	t.Cleanup(func() { _ = server.Close(); <-ended })

	ask := func(c net.Conn) string {
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: test\r\n\r\n"); err != nil {
			return err.Error()
		}
		answer := make([]byte, 12)
		if _, err := io.ReadFull(c, answer); err != nil {
			return err.Error()
		}
		return string(answer)
	}
	var conns []net.Conn
	for range few.connections + 1 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	const answer = "HTTP/1.1 200"
	for _, c := range conns[:2] {
		if got := ask(c); got != answer {
			t.Errorf("within the bound: %q", got)
		}
	}
	third := make(chan string, 1)
	go func() { third <- ask(conns[2]) }()
	for range 20 {
		held, err := net.Dial("tcp", l.Addr().String()) // behind the third
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		select {
		case got := <-third:
			t.Fatalf("beyond the bound: %q", got)
		default:
		}
	}
	_ = conns[0].Close()
	if got := <-third; got != answer {
		t.Errorf("when another had gone: %q", got)
	}
}
