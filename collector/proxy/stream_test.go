package proxy

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"grayfail/event"
)

const (
	events = "text/event-stream"
	role   = `data: {"id":"chatcmpl-1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}` + "\n\n"
	chunk  = `data: {"id":"chatcmpl-1","model":"m","choices":[{"index":0,"delta":{"content":"x"}}]}` + "\n\n"
	finish = `data: {"id":"chatcmpl-1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"timings":{"cache_n":10,"prompt_n":90,"prompt_ms":45,"predicted_n":60,"predicted_ms":2400}}` + "\n\n"
	done   = "data: [DONE]\n\n"
)

// say writes and flushes.
func say(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

// TestNeverHeldBack: the upstream sends a piece only when the client has had
// the one before it, so that any piece held back stops the test.
func TestNeverHeldBack(t *testing.T) {
	for _, coding := range []string{"", "gzip"} {
		t.Run("coding "+coding, func(t *testing.T) {
			had := make(chan struct{})
			l := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", events)
				out, flush := io.Writer(w), func() error { return nil }
				if coding == "gzip" {
					w.Header().Set("Content-Encoding", "gzip")
					z := gzip.NewWriter(w)
					defer z.Close()
					out, flush = z, z.Flush
				}
				_ = http.NewResponseController(w).Flush()
				<-had // the header alone
				for _, text := range []string{role, chunk, chunk, chunk[:20], chunk[20:], finish, done} {
					_, _ = io.WriteString(out, text)
					_ = flush()
					_ = http.NewResponseController(w).Flush()
					select {
					case <-had:
					case <-r.Context().Done():
						return
					}
				}
			}, nil)
			ctx := within(t)
			tell := func() {
				select {
				case had <- struct{}{}:
				case <-ctx.Done():
					t.Fatal("the upstream is gone")
				}
			}
			response := do(t, post(ctx, t, l.address, "/v1/chat/completions", strings.NewReader("{}")))
			tell()
			body := io.Reader(response.Body)
			if coding == "gzip" {
				z, err := gzip.NewReader(body)
				if err != nil {
					t.Fatal(err)
				}
				body = z
			}
			for _, text := range []string{role, chunk, chunk, chunk[:20], chunk[20:], finish, done} {
				got := make([]byte, len(text))
				if _, err := io.ReadFull(body, got); err != nil || string(got) != text {
					t.Fatalf("%q, %v, want %q", got, err, text)
				}
				tell()
			}
			if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
				t.Errorf("%q, %v at the end", rest, err)
			}
			r := l.emitted()
			if r.Outcome != event.OutcomeOK || r.ID != "chatcmpl-1" || r.DecodeRate != 25 || r.PrefillRate != 2000 ||
				r.PromptTokens != 100 || r.CachedTokens != 10 || r.GeneratedTokens != 60 || r.Source != "main" {
				t.Errorf("record %+v", r)
			}
			if r.FirstTokenNS <= r.StartNS || r.EndNS < r.FirstTokenNS {
				t.Errorf("times %+v", r)
			}
		})
	}
}

// TestEarlyAnswer: an upstream may answer while it still gets the request;
// each end goes on only when it has what the other sent.
func TestEarlyAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	got := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		r, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(role), role)
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
		fmt.Fprintf(conn, "%x\r\n%s\r\n0\r\n\r\n", len(done), done)
	}()
	l := front(t, listener.Addr().String(), nil)
	conn, err := net.Dial("tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 13\r\n\r\n{\"model\"")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(response.Body, make([]byte, len(role))); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, `:"q"}`)
	if body := <-got; body != `{"model":"q"}` {
		t.Errorf("the upstream got %q", body)
	}
	if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != done {
		t.Errorf("the client got %q, %v", rest, err)
	}
	if r := l.emitted(); r.Outcome != event.OutcomeOK {
		t.Errorf("record %+v", r)
	}
}

// TestRequestNotHeldBack: neither is a piece of the request.
func TestRequestNotHeldBack(t *testing.T) {
	had := make(chan string)
	l := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for {
			piece := make([]byte, 100)
			n, err := r.Body.Read(piece)
			if n > 0 {
				had <- string(piece[:n])
			}
			if err != nil {
				return
			}
		}
	}, nil)
	reader, writer := io.Pipe()
	go func() {
		for _, text := range []string{`{"model"`, `:"qwen"`, `}`} {
			_, _ = io.WriteString(writer, text)
			if got := <-had; got != text {
				t.Errorf("%q, want %q", got, text)
			}
		}
		writer.Close()
	}()
	do(t, post(within(t), t, l.address, "/completion", reader))
	if r := l.emitted(); r.Model != "qwen" {
		t.Errorf("record %+v", r)
	}
}

// TestOnlyInference: other paths pass without record or time limit.
func TestOnlyInference(t *testing.T) {
	l := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if _, limited := r.Context().Deadline(); limited {
			t.Error("limited")
		}
		_, _ = io.WriteString(w, `{"data":[]}`)
	}, func(c *Config, _ *Hooks) { c.Timeout = time.Hour })
	for _, path := range []string{"/v1/models", "/health", "/v1/embeddings", "/metrics"} {
		response := do(t, post(within(t), t, l.address, path, strings.NewReader("{}")))
		if _, err := io.ReadAll(response.Body); err != nil {
			t.Error(err)
		}
	}
	l.noneEmitted()
	if s := l.proxy.Status(); s.Availability != event.Up {
		t.Errorf("status %+v", s)
	}
}

// TestSlowClient: the upstream waits for a client that reads nothing, and all
// of it arrives in the end.
func TestSlowClient(t *testing.T) {
	const pieces = 300
	text := strings.Repeat("y", 64<<10)
	var sent atomic.Int64
	stuck := make(chan struct{})
	l := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		control := http.NewResponseController(w)
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"`)
		for i := range pieces {
			if i == pieces/2 {
				close(stuck)
			}
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
			_ = control.Flush()
			sent.Add(int64(len(text)))
		}
		_, _ = io.WriteString(w, `"}}],"model":"m","usage":{"prompt_tokens":1,"completion_tokens":2}}`)
	}, nil)
	response := do(t, post(within(t), t, l.address, "/completion", strings.NewReader("{}")))
	var got int64
	body := bufio.NewReaderSize(response.Body, 4096)
	piece := make([]byte, 4096)
	for {
		n, err := body.Read(piece)
		got += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	<-stuck
	if got < sent.Load() || got > sent.Load()+200 {
		t.Errorf("%d bytes of %d", got, sent.Load())
	}
	if r := l.emitted(); r.Outcome != event.OutcomeOK || r.Model != "m" || r.GeneratedTokens != 2 {
		t.Errorf("record %+v", r)
	}
}

// TestBasePath: an upstream's path stands before the client's.
func TestBasePath(t *testing.T) {
	l := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }, func(c *Config, _ *Hooks) {
		c.Upstream = &url.URL{Scheme: "http", Host: c.Upstream.Host, Path: "/engine"}
	})
	body, _ := io.ReadAll(do(t, post(within(t), t, l.address, "/v1/models", nil)).Body)
	if string(body) != "/engine/v1/models" {
		t.Errorf("path %q", body)
	}
}

// TestKeepAlive: nothing about a call ends the client's connection.
func TestKeepAlive(t *testing.T) {
	l := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", events)
		say(w, role+chunk+finish+done) // net/http reads the body first
	}, nil)
	var opened atomic.Int64
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		opened.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	defer transport.CloseIdleConnections()
	for i := range 50 {
		body := io.Reader(strings.NewReader("{}"))
		if i%2 == 1 {
			body = io.MultiReader(body) // of unknown length: chunked
		}
		response, err := transport.RoundTrip(post(within(t), t, l.address, "/completion", body))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(response.Body); err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if r := l.emitted(); r.Outcome != event.OutcomeOK {
			t.Errorf("record %+v", r)
		}
	}
	if opened.Load() != 1 {
		t.Errorf("%d connections to the proxy for 50 calls", opened.Load())
	}
}

// TestUpstreamClosesSilently: llama-server promises to keep the connection
// and closes it after a stream. No call may be lost to that.
func TestUpstreamClosesSilently(t *testing.T) {
	upstream := raw(t, func(conn net.Conn, r *http.Request) {
		if r.Header.Get("Connection") != "" {
			t.Errorf("Connection: %q", r.Header.Get("Connection"))
		}
		text := role + chunk + finish + done
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nKeep-Alive: timeout=5, max=100\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(text), text)
	})
	l := front(t, upstream, nil)
	for range 50 {
		response := do(t, post(within(t), t, l.address, "/completion", strings.NewReader("{}")))
		if _, err := io.ReadAll(response.Body); err != nil || response.StatusCode != 200 {
			t.Errorf("%s, %v", response.Status, err)
		}
		if r := l.emitted(); r.Outcome != event.OutcomeOK {
			t.Errorf("record %+v", r)
		}
	}
}
