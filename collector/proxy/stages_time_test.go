package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
)

// pipes is a listener without a network: in a bubble of synctest time stands
// still until everybody waits, which reading from a socket does not count as.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p <- there
	return here, nil
}

// sender calls send before each piece of a request. Like net/http it says that
// the body has ended together with the last piece.
type sender struct {
	io.Reader
	send func()
}

func (s sender) Read(p []byte) (int, error) {
	s.send()
	return s.Reader.Read(p)
}

// taker lets a 1xx pass: the recorder takes it for the answer's status.
type taker struct{ *httptest.ResponseRecorder }

func (t taker) WriteHeader(status int) {
	if status >= 200 {
		t.ResponseRecorder.WriteHeader(status)
	}
}

// TestStageTimes: each second is in the stage in which it went by. What waited
// for the client's request is in none, and the first byte of a 1xx is not the
// answer's.
func TestStageTimes(t *testing.T) {
	for name, test := range map[string]struct {
		prompt            string
		interim           int
		accept, send      time.Duration // seconds: the upstream, before it reads the body; the client, for each piece
		write, first, end time.Duration // wanted seconds
	}{
		"quick":                   {prompt: "{}", first: 3, end: 2},
		"no body":                 {first: 3, end: 2},
		"interim answer":          {prompt: "{}", interim: http.StatusEarlyHints, first: 3, end: 2},
		"upstream takes its time": {prompt: strings.Repeat("x", 1<<17), accept: 4, write: 4, first: 3, end: 2},
		"client sends slowly":     {prompt: "{}", send: 5, first: 3, end: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener, stages := make(pipes), new(ledger)
				upstream := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					time.Sleep(test.accept * time.Second)
					_, _ = io.Copy(io.Discard, r.Body)
					if test.interim != 0 {
						w.WriteHeader(test.interim)
					}
					time.Sleep(3 * time.Second)
					say(w, chunk)
					time.Sleep(2 * time.Second)
					say(w, done)
				})}
				go func() { _ = upstream.Serve(listener) }() // ErrServerClosed
				p := New(Config{Name: "main", Upstream: &url.URL{Scheme: "http", Host: "gpu:8080"}}, Hooks{Stages: stages.add})
				p.transport.DialContext = listener.dial

				client := taker{httptest.NewRecorder()}
				r := httptest.NewRequest(http.MethodPost, "/completion", sender{iotest.DataErrReader(strings.NewReader(test.prompt)), func() { time.Sleep(test.send * time.Second) }})
				if r.ContentLength = int64(len(test.prompt)); r.ContentLength == 0 {
					r.Body = http.NoBody
				}
				p.ServeHTTP(client, r)
				if got := client.Body.String(); got != chunk+done {
					t.Errorf("answer %q", got)
				}
				want := []event.HTTPStages{{Upstream: "gpu:8080", Durations: map[event.HTTPStage]time.Duration{
					event.HTTPStageWrite:     test.write * time.Second,
					event.HTTPStageFirstByte: test.first * time.Second,
					event.HTTPStageRead:      test.end * time.Second,
				}}}
				if diff := cmp.Diff(want, stages.all); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				close(listener)
				_ = upstream.Close()
				p.transport.CloseIdleConnections()
			})
		})
	}
}
