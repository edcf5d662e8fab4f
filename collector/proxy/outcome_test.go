package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"grayfail/event"
)

// TestClientLeaves: the upstream learns of it, and it is nobody's failure.
func TestClientLeaves(t *testing.T) {
	left := make(chan struct{})
	l := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", events)
		say(w, role+chunk)
		<-r.Context().Done()
		close(left)
	}, nil)
	ctx, cancel := context.WithCancel(within(t))
	response := do(t, post(ctx, t, l.address, "/v1/chat/completions", strings.NewReader("{}")))
	if _, err := io.ReadFull(response.Body, make([]byte, len(role+chunk))); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-left
	if r := l.emitted(); r.Outcome != event.OutcomeCanceled {
		t.Errorf("record %+v", r)
	}
	if s := l.proxy.Status(); s.Availability != event.Up || s.Errors != 0 {
		t.Errorf("status %+v", s)
	}
}

// TestClientLeavesEarly: before the answer, and in the middle of its request.
func TestClientLeavesEarly(t *testing.T) {
	t.Run("before the answer", func(t *testing.T) {
		came := make(chan struct{})
		l := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			close(came)
			<-r.Context().Done()
		}, nil)
		ctx, cancel := context.WithCancel(within(t))
		go func() {
			<-came
			cancel()
		}()
		transport := new(http.Transport)
		defer transport.CloseIdleConnections()
		if _, err := transport.RoundTrip(post(ctx, t, l.address, "/completion", strings.NewReader("{}"))); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if r := l.emitted(); r.Outcome != event.OutcomeCanceled {
			t.Errorf("record %+v", r)
		}
	})
	t.Run("in its request", func(t *testing.T) {
		l := serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, nil)
		conn, err := net.Dial("tcp", l.address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf")
		conn.Close()
		if r := l.emitted(); r.Outcome != event.OutcomeCanceled {
			t.Errorf("record %+v", r)
		}
	})
}

// TestLeavesAtDone: clients stop reading at [DONE]; the answer was whole.
func TestLeavesAtDone(t *testing.T) {
	l := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", events)
		say(w, role+chunk+finish+done)
		<-r.Context().Done()
	}, nil)
	ctx, cancel := context.WithCancel(within(t))
	response := do(t, post(ctx, t, l.address, "/v1/chat/completions", strings.NewReader("{}")))
	if _, err := io.ReadFull(response.Body, make([]byte, len(role+chunk+finish+done))); err != nil {
		t.Fatal(err)
	}
	cancel()
	if r := l.emitted(); r.Outcome != event.OutcomeOK || r.GeneratedTokens != 60 {
		t.Errorf("record %+v", r)
	}
}

// TestUpstreamDies in the middle of an answer: so does the answer.
func TestUpstreamDies(t *testing.T) {
	upstream := raw(t, func(conn net.Conn, _ *http.Request) {
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(role+chunk), role+chunk)
		_ = conn.(*net.TCPConn).SetLinger(0)
	})
	l := front(t, upstream, nil)
	response := do(t, post(within(t), t, l.address, "/v1/chat/completions", strings.NewReader("{}")))
	body, err := io.ReadAll(response.Body)
	// A reset may overtake what was sent; what came must be a beginning of it.
	if err == nil || !strings.HasPrefix(role+chunk, string(body)) {
		t.Errorf("the client got %q, %v", body, err)
	}
	if r := l.emitted(); r.Outcome != event.OutcomeError {
		t.Errorf("record %+v", r)
	}
	if s := l.proxy.Status(); s.Errors != 1 {
		t.Errorf("status %+v", s)
	}
}

// TestErrorInStream: HTTP 200 was sent long before.
func TestErrorInStream(t *testing.T) {
	l := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", events)
		say(w, role+chunk+`data: {"error":{"code":500,"message":"m","type":"server_error"}}`+"\n\n")
	}, nil)
	response := do(t, post(within(t), t, l.address, "/v1/chat/completions", strings.NewReader("{}")))
	if body, err := io.ReadAll(response.Body); err != nil || !strings.HasSuffix(string(body), "}}\n\n") {
		t.Errorf("%q, %v", body, err)
	}
	if r := l.emitted(); r.Outcome != event.OutcomeError {
		t.Errorf("record %+v", r)
	}
}

// TestRefused: nobody listens, then somebody does.
func TestRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	l := front(t, address, func(c *Config, _ *Hooks) { c.Model = "configured" })
	if s := l.proxy.Status(); s.Availability != event.NotTried || s.Collector != "requests" {
		t.Errorf("status before the first request: %+v", s)
	}
	response := do(t, post(within(t), t, l.address, "/completion", strings.NewReader("{}")))
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusBadGateway || strings.Contains(string(body), address) {
		t.Errorf("%s %q", response.Status, body)
	}
	if r := l.emitted(); r.Outcome != event.OutcomeError || r.Model != "configured" || !strings.HasPrefix(r.ID, "gf-") {
		t.Errorf("record %+v", r)
	}
	s := l.proxy.Status()
	if s.Availability != event.Failed || s.Errors != 1 || len(s.Problems) != 1 || s.Problems[0].Reason != "upstream_unreachable" ||
		!strings.Contains(s.Problems[0].Detail, "connection refused") {
		t.Errorf("status %+v", s)
	}
	if listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: plain(200, http.Header{"Content-Type": {"application/json"}}, `{"choices":[]}`)}
	go server.Serve(listener)
	defer server.Close()
	do(t, post(within(t), t, l.address, "/completion", strings.NewReader("{}")))
	if r := l.emitted(); r.Outcome != event.OutcomeOK {
		t.Errorf("record %+v", r)
	}
	if s := l.proxy.Status(); s.Availability != event.Up || s.Errors != 1 {
		t.Errorf("status %+v", s)
	}
}

// TestClientErrors: who asked wrongly is told apart from who was refused for load.
func TestClientErrors(t *testing.T) {
	for status, mine := range map[int]bool{400: true, 401: true, 404: true, 408: false, 413: true, 429: false, 500: false, 503: false} {
		l := serve(t, plain(status, http.Header{"Content-Type": {"application/json"}}, `{"error":{"message":"no","code":1}}`), nil)
		do(t, post(within(t), t, l.address, "/v1/chat/completions", strings.NewReader("{}")))
		if r := l.emitted(); r.Outcome != event.OutcomeError || r.Status != status || r.ClientError() != mine {
			t.Errorf("%d: client's own fault %v, record %+v", status, r.ClientError(), r)
		}
	}
}

// TestFingerprint: what the engine calls its build reaches the record.
func TestFingerprint(t *testing.T) {
	l := serve(t, plain(200, http.Header{"Content-Type": {"application/json"}}, `{"choices":[],"system_fingerprint":"b11669\u0000-x"}`), nil)
	do(t, post(within(t), t, l.address, "/v1/chat/completions", strings.NewReader("{}")))
	if r := l.emitted(); r.Fingerprint != "b11669_-x" || r.Status != 200 {
		t.Errorf("record %+v", r)
	}
}

// TestTimeout: 504 if nothing was sent; the upstream learns of it.
func TestTimeout(t *testing.T) {
	told := make(chan struct{})
	l := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		close(told)
	}, func(c *Config, _ *Hooks) { c.Timeout = 50 * time.Millisecond })
	response := do(t, post(within(t), t, l.address, "/v1/chat/completions", strings.NewReader("{}")))
	if body, err := io.ReadAll(response.Body); response.StatusCode != http.StatusGatewayTimeout || err != nil {
		t.Errorf("%s %q, %v: want 504", response.Status, body, err)
	}
	<-told
	if r := l.emitted(); r.Outcome != event.OutcomeTimeout {
		t.Errorf("record %+v", r)
	}
	if s := l.proxy.Status(); s.Errors != 0 {
		t.Errorf("status %+v", s)
	}
}

// TestTimeoutInStream: what was sent cannot be taken back; the stream is cut.
func TestTimeoutInStream(t *testing.T) {
	told := make(chan struct{})
	l := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", events)
		say(w, role+chunk)
		<-r.Context().Done()
		close(told)
	}, func(c *Config, _ *Hooks) { c.Timeout = time.Hour })
	up := make(chan struct{}) // closed when the hour is up
	l.proxy.limit = func(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
		if d != time.Hour {
			t.Errorf("limit %s", d)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		go func() {
			<-up
			cancel(cause)
		}()
		return ctx, func() { cancel(nil) }
	}
	response := do(t, post(within(t), t, l.address, "/v1/chat/completions", strings.NewReader("{}")))
	if _, err := io.ReadFull(response.Body, make([]byte, len(role+chunk))); err != nil {
		t.Fatal(err)
	}
	close(up)
	if rest, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("%q: want a cut stream", rest)
	}
	<-told
	if r := l.emitted(); r.Outcome != event.OutcomeTimeout || r.GeneratedTokens != 1 {
		t.Errorf("record %+v", r)
	}
}

// TestTimeoutInRequest: a client that sends too slowly gets 504 at once.
func TestTimeoutInRequest(t *testing.T) {
	l := serve(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
		func(c *Config, _ *Hooks) { c.Timeout = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "POST /completion HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusGatewayTimeout || !response.Close {
		t.Errorf("%s, closes %v", response.Status, response.Close)
	}
	conn.Close()
	if r := l.emitted(); r.Outcome != event.OutcomeTimeout {
		t.Errorf("record %+v", r)
	}
}
