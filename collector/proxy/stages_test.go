package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
)

// ledger collects the stages of calls.
type ledger struct {
	mu  sync.Mutex
	all []event.HTTPStages
}

func (l *ledger) add(s event.HTTPStages) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
}

// one waits for the record of the only call, and gives its stages: they come
// first.
func (l *lab) one() event.HTTPStages {
	l.t.Helper()
	r := l.emitted()
	l.ledger.mu.Lock()
	defer l.ledger.mu.Unlock()
	if len(l.ledger.all) != 1 {
		l.t.Fatalf("%d calls with stages, want 1: %v", len(l.ledger.all), l.ledger.all)
	}
	if diff := cmp.Diff(&l.ledger.all[0], r.HTTP); diff != "" {
		l.t.Errorf("the stages told and those of the record (-told +record)\n%s", diff)
	}
	return l.ledger.all[0]
}

func names(s event.HTTPStages) string {
	var all []string
	for _, stage := range event.HTTPStageNames {
		if _, ok := s.Durations[stage]; ok {
			all = append(all, string(stage))
		}
	}
	return strings.Join(all, " ")
}

func ask(t testing.TB, l *lab, body string) {
	t.Helper()
	response := do(t, post(within(t), t, l.address, "/v1/chat/completions", strings.NewReader(body)))
	_, _ = io.Copy(io.Discard, response.Body) // cut answers too
}

// TestStages: what happened is there, by the real clock above zero.
func TestStages(t *testing.T) {
	secure := httptest.NewTLSServer(plain(200, nil, done))
	defer secure.Close()
	_, port, err := net.SplitHostPort(secure.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	cut := raw(t, func(conn net.Conn, _ *http.Request) {
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
	})
	silent := raw(t, func(net.Conn, *http.Request) {})
	for name, test := range map[string]struct {
		lab        *lab
		body, want string
	}{
		"address": {serve(t, plain(200, nil, done), nil), "{}", "connect write first_byte read"},
		"no body": {serve(t, plain(200, nil, done), nil), "", "connect write first_byte read"},
		"error":   {serve(t, plain(500, nil, done), nil), "{}", "connect write first_byte read"},
		"cut":     {front(t, cut, nil), "{}", "connect write first_byte"},
		"silent":  {front(t, silent, nil), "", "connect write"},
		"name, TLS": {front(t, "localhost:"+port, func(c *Config, _ *Hooks) {
			c.Upstream.Scheme = "https"
			c.TLS = &tls.Config{RootCAs: roots, ServerName: "example.com"}
		}), "{}", "dns connect tls write first_byte read"},
		"TLS refused": {front(t, "localhost:"+port, func(c *Config, _ *Hooks) {
			c.Upstream.Scheme = "https"
		}), "{}", "dns connect"},
	} {
		t.Run(name, func(t *testing.T) {
			ask(t, test.lab, test.body)
			got := test.lab.one()
			if names(got) != test.want || got.Upstream != test.lab.upstream || got.Reused {
				t.Errorf("%+v, want %s of %s", got, test.want, test.lab.upstream)
			}
			for stage, d := range got.Durations {
				if d <= 0 {
					t.Errorf("%s took %s", stage, d)
				}
			}
		})
	}
}

// TestNoStages: where nothing was measured nothing is said.
func TestNoStages(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	refused := front(t, closed.Addr().String(), nil)
	ask(t, refused, "{}")
	refused.emitted()
	other := serve(t, plain(200, nil, ""), nil)
	do(t, post(within(t), t, other.address, "/v1/embeddings", nil))
	other.noneEmitted()
	redirect := serve(t, plain(307, http.Header{"Location": {"/x"}}, ""), nil)
	ask(t, redirect, "{}")
	redirect.noneEmitted()
	for _, l := range []*lab{refused, other, redirect} {
		if len(l.ledger.all) != 0 {
			t.Errorf("stages %v", l.ledger.all)
		}
	}
	unasked := serve(t, plain(200, nil, done), func(_ *Config, h *Hooks) { h.Stages = nil })
	ask(t, unasked, "{}")
	unasked.emitted()
}

// TestStagesToldLate: the transport may tell at any time and in any order.
func TestStagesToldLate(t *testing.T) {
	at := newClock()
	fresh := func() (*stages, *httptrace.ClientTrace) {
		s := &stages{now: at.Now}
		return s, s.trace()
	}
	t.Run("after the end", func(t *testing.T) {
		s, trace := fresh()
		trace.ConnectStart("tcp", "")
		var late sync.WaitGroup
		for range 8 {
			late.Go(func() {
				trace.DNSStart(httptrace.DNSStartInfo{})
				trace.DNSDone(httptrace.DNSDoneInfo{})
				trace.TLSHandshakeStart()
				trace.TLSHandshakeDone(tls.ConnectionState{}, nil)
				trace.WroteRequest(httptrace.WroteRequestInfo{})
				trace.GotFirstResponseByte()
				_ = trace.Got1xxResponse(103, nil)
				s.ask(time.Second)
				s.take("")
			})
		}
		late.Wait()
		got := s.take("u:1")
		before := names(got)
		trace.ConnectDone("tcp", "", nil)
		trace.GotConn(httptrace.GotConnInfo{})
		if names(got) != before || strings.Contains(before, "connect") {
			t.Errorf("%v, before %s", got, before)
		}
	})
	t.Run("two addresses", func(t *testing.T) {
		s, trace := fresh()
		trace.ConnectStart("tcp", "[::1]:1")
		at.advance(time.Second)
		trace.ConnectDone("tcp", "[::1]:1", errors.New("refused"))
		trace.ConnectStart("tcp", "127.0.0.1:1")
		at.advance(time.Second)
		trace.ConnectDone("tcp", "127.0.0.1:1", nil)
		at.advance(time.Second)
		trace.ConnectDone("tcp", "127.0.0.2:1", nil)
		if got := s.take("").Durations; len(got) != 1 || got[event.HTTPStageConnect] != 2*time.Second {
			t.Errorf("%v", got)
		}
	})
	t.Run("answer overtakes the request", func(t *testing.T) {
		s, trace := fresh()
		trace.GotConn(httptrace.GotConnInfo{Reused: true})
		trace.GotFirstResponseByte()
		s.header()
		at.advance(time.Second)
		trace.WroteRequest(httptrace.WroteRequestInfo{})
		s.whole(at.Now(), 0)
		s.whole(at.Now().Add(time.Hour), 0)
		got := s.take("")
		if len(got.Durations) != 1 || got.Durations[event.HTTPStageRead] != time.Second || !got.Reused {
			t.Errorf("%+v", got)
		}
	})
	t.Run("answer overtakes the callback", func(t *testing.T) {
		s, trace := fresh()
		trace.GotConn(httptrace.GotConnInfo{})
		at.advance(time.Second)
		s.given()
		at.advance(2 * time.Second)
		trace.GotFirstResponseByte()
		for _, told := range []bool{false, true} {
			if told {
				at.advance(time.Second)
				trace.WroteRequest(httptrace.WroteRequestInfo{})
			}
			got := s.take("").Durations
			if len(got) != 2 || got[event.HTTPStageWrite] != time.Second || got[event.HTTPStageFirstByte] != 2*time.Second {
				t.Errorf("told %v: %v", told, got)
			}
		}
	})
	t.Run("request broke off", func(t *testing.T) {
		s, trace := fresh()
		trace.DNSStart(httptrace.DNSStartInfo{})
		trace.DNSDone(httptrace.DNSDoneInfo{Err: errors.New("no such host")})
		trace.GotConn(httptrace.GotConnInfo{})
		trace.WroteRequest(httptrace.WroteRequestInfo{Err: errors.New("reset")})
		if got := s.take("").Durations; len(got) != 0 {
			t.Errorf("%v", got)
		}
	})
}

func TestHostPort(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:8080": "127.0.0.1:8080", "http://gpu/v1?x=y": "gpu:80", "https://user:secret@gpu": "gpu:443",
		"http://[fd00::2]": "[fd00::2]:80", "http://[fd00::2]:1": "[fd00::2]:1",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := hostPort(u); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if n := len(event.HTTPStageNames); n != 6 {
		t.Errorf("%d stages", n)
	}
}

// TestReadWithoutTheClient: what the client made us wait for is no time of the
// upstream, even if that is all there was.
func TestReadWithoutTheClient(t *testing.T) {
	first := time.Unix(1_800_000_000, 0)
	for blocked, want := range map[time.Duration]time.Duration{0: 9 * time.Second, 7 * time.Second: 2 * time.Second, 10 * time.Second: 0} {
		s := &stages{first: first}
		s.whole(first.Add(9*time.Second), blocked)
		s.whole(first.Add(20*time.Second), 0) // told again: the first counts
		if got := s.take("gpu:8080").Durations[event.HTTPStageRead]; got != want {
			t.Errorf("blocked for %s: read %s, want %s", blocked, got, want)
		}
	}
}
