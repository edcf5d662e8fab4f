package proxy

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"grayfail/event"
)

// replaced puts a successor of l's proxy beside it, on a listener of its own:
// what the exporter does behind one listener when it reads its configuration
// again.
func (l *lab) replaced(t *testing.T, upstream string, now func() time.Time) (*Proxy, string) {
	t.Helper()
	next := l.proxy.Replace(Config{Name: "next", Upstream: &url.URL{Scheme: "http", Host: upstream}},
		Hooks{Emit: func(r event.Request) { l.requests <- r }, Log: l.problems.add, Now: now})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(next)
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := next.Shutdown(within(t)); err != nil {
			t.Error(err)
		}
		<-served
	})
	return next, listener.Addr().String()
}

// TestReplaceCountsTogether: requests at one upstream share it, whichever
// configuration they came by; those at another do not.
func TestReplaceCountsTogether(t *testing.T) {
	at := newClock()
	goOn := make(chan struct{})
	answer := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", events)
		say(w, role+chunk)
		<-goOn
		say(w, finish+done)
	}
	l := serve(t, answer, func(_ *Config, h *Hooks) { h.Now = at.Now })
	other := serve(t, answer, nil)
	next, same := l.replaced(t, l.upstream, at.Now)
	_, elsewhere := l.replaced(t, other.upstream, at.Now)

	var bodies []io.ReadCloser
	for _, address := range []string{l.address, same, elsewhere} {
		response := do(t, post(within(t), t, address, "/v1/chat/completions", strings.NewReader("{}")))
		if _, err := io.ReadFull(response.Body, make([]byte, len(role+chunk))); err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, response.Body)
	}
	for which, p := range map[string]*Proxy{"the replaced": l.proxy, "the new": next} {
		n := 0
		for _, calls := range p.InFlight() {
			n += calls
		}
		if n != 3 {
			t.Errorf("%s one has %d in flight, want all 3", which, n)
		}
	}
	at.advance(time.Second)
	close(goOn)
	for _, body := range bodies {
		if _, err := io.Copy(io.Discard, body); err != nil {
			t.Error(err)
		}
	}
	seen := make(map[float64]int)
	for range bodies {
		seen[l.emitted().Concurrency]++
	}
	if seen[2] != 2 || seen[1] != 1 {
		t.Errorf("requests by their concurrency: %v, want two that share an upstream and one alone", seen)
	}
}

// TestReplaceKeepsUpgraded: a websocket goes on through the proxy it came by,
// and ends with its successor's Shutdown.
func TestReplaceKeepsUpgraded(t *testing.T) {
	l := serve(t, echo, nil)
	conn, reader := dialUpgrade(t, l.address)
	next, _ := l.replaced(t, "127.0.0.1:1", nil)
	if _, err := io.WriteString(conn, "still"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(reader, got); err != nil || string(got) != "still" {
		t.Fatalf("%q, %v", got, err)
	}
	if err := next.Shutdown(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.ReadByte(); err == nil {
		t.Error("still open after the end")
	}
}
