package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"grayfail/event"
	"grayfail/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience ends a test that would hang; nothing is measured with it.
const patience = 20 * time.Second

// lab is an upstream with a proxy in front of it, both on loopback.
type lab struct {
	t        testing.TB
	proxy    *Proxy
	server   *http.Server
	upstream string // host:port
	address  string // host:port of the proxy
	requests chan event.Request
	problems *lines
	ledger   *ledger // traces every call of every test
}

// lines collects what was logged.
type lines struct {
	mu  sync.Mutex
	all []error
}

func (l *lines) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, err)
}

func (l *lines) texts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var texts []string
	for _, err := range l.all {
		texts = append(texts, err.Error())
	}
	return texts
}

// front puts a proxy in front of an address.
func front(t testing.TB, upstream string, change func(*Config, *Hooks)) *lab {
	t.Helper()
	l := &lab{t: t, upstream: upstream, requests: make(chan event.Request, 1024), problems: new(lines), ledger: new(ledger)}
	config := Config{Name: "main", Upstream: &url.URL{Scheme: "http", Host: upstream}}
	hooks := Hooks{Emit: func(r event.Request) { l.requests <- r }, Log: l.problems.add, Stages: l.ledger.add}
	if change != nil {
		change(&config, &hooks)
	}
	l.proxy = New(config, hooks)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.address = listener.Addr().String()
	l.server = NewServer(l.proxy)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = l.server.Serve(listener) // ErrServerClosed
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = l.server.Close()
		if err := l.proxy.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		<-served
	})
	return l
}

// serve starts an upstream with a handler, and a proxy in front of it.
func serve(t testing.TB, handler http.HandlerFunc, change func(*Config, *Hooks)) *lab {
	t.Helper()
	upstream := httptest.NewUnstartedServer(handler)
	upstream.Config.Protocols = new(http.Protocols)
	upstream.Config.Protocols.SetHTTP1(true)
	upstream.Config.Protocols.SetUnencryptedHTTP2(true)
	upstream.Start()
	t.Cleanup(upstream.Close)
	return front(t, upstream.Listener.Addr().String(), change)
}

// raw starts an upstream that reads one request of each connection and lets
// answer do the rest.
func raw(t testing.TB, answer func(net.Conn, *http.Request)) string {
	t.Helper()
	return testkit.Accept(t, func(conn net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		answer(conn, r)
	})
}

// emitted waits for the next record.
func (l *lab) emitted() event.Request {
	l.t.Helper()
	select {
	case r := <-l.requests:
		return r
	case <-time.After(patience):
		l.t.Fatal("no record came")
		return event.Request{}
	}
}

// noneEmitted waits until every call is dealt with: none made a record.
func (l *lab) noneEmitted() {
	l.t.Helper()
	if err := l.server.Shutdown(within(l.t)); err != nil {
		l.t.Error(err)
	}
	if err := l.proxy.Shutdown(within(l.t)); err != nil {
		l.t.Error(err)
	}
	select {
	case r := <-l.requests:
		l.t.Errorf("unexpected record %+v", r)
	default:
	}
}

// do sends a request with a client that neither pools, redirects, nor decodes.
func do(t testing.TB, r *http.Request) *http.Response {
	t.Helper()
	transport := &http.Transport{DisableCompression: true}
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		response.Body.Close()
		transport.CloseIdleConnections()
	})
	return response
}

func post(ctx context.Context, t testing.TB, address, path string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+path, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
