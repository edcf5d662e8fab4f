package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"grayfail/event"
)

// echo upgrades and sends back what it gets.
func echo(w http.ResponseWriter, _ *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n")
	_ = rw.Flush()
	_, _ = io.Copy(conn, rw)
}

func dialUpgrade(t *testing.T, address string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: y\r\n\r\n")
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != 101 || response.Header.Get("Sec-WebSocket-Accept") != "x" {
		t.Fatalf("%s %v", response.Status, response.Header)
	}
	return conn, reader
}

func TestUpgrade(t *testing.T) {
	l := serve(t, echo, nil)
	conn, reader := dialUpgrade(t, l.address)
	for _, text := range []string{"a", "bc", strings.Repeat("z", 100_000)} {
		go func() { _, _ = io.WriteString(conn, text) }()
		got := make([]byte, len(text))
		if _, err := io.ReadFull(reader, got); err != nil || string(got) != text {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	l.noneEmitted()
}

// TestShutdownEndsUpgraded: http.Server.Shutdown does not know of them.
func TestShutdownEndsUpgraded(t *testing.T) {
	l := serve(t, echo, nil)
	_, reader := dialUpgrade(t, l.address)
	if err := l.server.Shutdown(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := l.proxy.Shutdown(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.ReadByte(); err == nil {
		t.Error("still open")
	}
}

// TestShutdownLetsStreamsFinish: what has begun may end.
func TestShutdownLetsStreamsFinish(t *testing.T) {
	goOn := make(chan struct{})
	l := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", events)
		say(w, role+chunk)
		<-goOn
		say(w, finish+done)
	}, nil)
	response := do(t, post(within(t), t, l.address, "/v1/chat/completions", strings.NewReader("{}")))
	if _, err := io.ReadFull(response.Body, make([]byte, len(role+chunk))); err != nil {
		t.Fatal(err)
	}
	down := make(chan error, 1)
	l.server.RegisterOnShutdown(func() { close(goOn) })
	go func() { down <- l.server.Shutdown(within(t)) }()
	if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != finish+done {
		t.Errorf("%q, %v", rest, err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
	if r := l.emitted(); r.Outcome != event.OutcomeOK {
		t.Errorf("record %+v", r)
	}
}

// TestShutdownCutsTheRest: past the deadline it is ended by us, which is not
// the engine's failure.
func TestShutdownCutsTheRest(t *testing.T) {
	l := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", events)
		say(w, role+chunk)
		<-r.Context().Done()
	}, nil)
	response := do(t, post(within(t), t, l.address, "/v1/chat/completions", strings.NewReader("{}")))
	if _, err := io.ReadFull(response.Body, make([]byte, len(role+chunk))); err != nil {
		t.Fatal(err)
	}
	past, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.server.Shutdown(past); err == nil {
		t.Fatalf("the stream has not ended: in flight %v, status %+v, log %q", l.proxy.InFlight(), l.proxy.Status(), l.problems.texts())
	}
	if err := l.proxy.Shutdown(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("the client took a cut answer for a whole one")
	}
	if r := l.emitted(); r.Outcome != event.OutcomeCanceled {
		t.Errorf("record %+v", r)
	}
}

// TestH2C: HTTP/2 without TLS, as gRPC-like clients and some routers speak it.
func TestH2C(t *testing.T) {
	l := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", events)
		w.Header().Set("Trailer", "X-Late")
		for _, text := range []string{role, chunk, finish, done} {
			say(w, text)
		}
		w.Header().Set("X-Late", "1")
	}, nil)
	transport := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(post(within(t), t, l.address, "/v1/chat/completions", strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != role+chunk+finish+done || response.ProtoMajor != 2 || response.Trailer.Get("X-Late") != "1" {
		t.Errorf("%s %q %v, %v", response.Proto, body, response.Trailer, err)
	}
	if r := l.emitted(); r.Outcome != event.OutcomeOK || r.GeneratedTokens != 60 {
		t.Errorf("record %+v", r)
	}
}
