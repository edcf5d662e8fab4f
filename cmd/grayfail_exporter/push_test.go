package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"grayfail/collector/push"
	"grayfail/event"
	"grayfail/internal/testkit"
)

// what llama-cli of 2024 says of n runs, and text that is no line
func cliOutput(n int) string {
	return fmt.Sprintf(` Once upon a time

llama_perf_context_print: prompt eval time =     160.00 ms /    16 tokens (   10.00 ms per token,   100.00 tokens per second)
llama_perf_context_print:        eval time =    1550.00 ms / %5d runs   (   50.00 ms per token,    20.00 tokens per second)
llama_perf_context_print:       total time =    1720.00 ms /    47 tokens
`, n)
}

// An endpoint is the real push API; refuse may answer in its place.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	taken  []event.Request
	refuse func(n int) (status int) // of the n-th POST, from 1; 0: take it
	posts  int
}

func newEndpoint(t *testing.T, refuse func(n int) int) *endpoint {
	e := &endpoint{refuse: refuse}
	handler := push.New(push.Config{}, push.Hooks{Emit: func(r event.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.taken = append(e.taken, r)
	}})
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		e.posts++
		status := e.refuse(e.posts)
		e.mu.Unlock()
		if status != 0 {
			http.Error(w, "no", status)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) requests() []event.Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.taken
}

func always(status int) func(int) int { return func(int) int { return status } }

func TestPush(t *testing.T) {
	e := newEndpoint(t, always(0))
	input := cliOutput(31) + "\x00\xff" + cliOutput(32) + "no newline"
	var out, errs bytes.Buffer
	if code := pushCommand(t.Context(), pushFlags{e.URL, "qwen"}, strings.NewReader(input), &out, &errs); code != 0 || errs.Len() > 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	if out.String() != input {
		t.Errorf("passed on %q", &out)
	}
	got := e.requests()
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	r := got[0]
	if r.Model != "qwen" || r.Source != "push" || r.GeneratedTokens != 31 || r.DecodeRate != 20 || r.PrefillRate != 100 ||
		r.FirstTokenNS != r.EndNS-1_550_000_000 || time.Since(time.Unix(0, r.EndNS)) > time.Hour {
		t.Errorf("%+v", r)
	}
}

// An exporter that is away for a while, or too busy, gets the requests later.
func TestPushRetries(t *testing.T) {
	e := newEndpoint(t, func(n int) int { return []int{0, 503, 429, 0}[min(n, 3)] })
	var out, errs bytes.Buffer
	if code := pushCommand(t.Context(), pushFlags{e.URL, "m"}, strings.NewReader(cliOutput(31)), &out, &errs); code != 0 || errs.Len() > 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	if len(e.requests()) != 1 || e.posts != 3 {
		t.Errorf("%d requests in %d posts", len(e.requests()), e.posts)
	}
}

// What the exporter will not take is said; the output is passed on all the same.
func TestPushRefused(t *testing.T) {
	secret := "hunter2"
	for status, want := range map[int]string{
		http.StatusUnauthorized: "HTTP 401",
		http.StatusNotFound:     "HTTP 404",
	} {
		e := newEndpoint(t, always(status))
		target := strings.Replace(e.URL, "http://", "http://me:"+secret+"@", 1)
		var out, errs bytes.Buffer
		input := cliOutput(31)
		if code := pushCommand(t.Context(), pushFlags{target, "m"}, strings.NewReader(input), &out, &errs); code != 1 {
			t.Errorf("%d: exit %d", status, code)
		}
		if out.String() != input || !strings.Contains(errs.String(), "1 requests were not pushed") || !strings.Contains(errs.String(), want) {
			t.Errorf("%d: %s", status, &errs)
		}
		if strings.Contains(errs.String(), secret) {
			t.Errorf("the password is shown: %s", &errs)
		}
	}

	// One line of several.
	e := newEndpoint(t, always(0))
	p := newTestPusher(t, e.URL)
	p.add(event.Request{ID: "1", Model: "m", DecodeRate: 1, Outcome: event.OutcomeOK})
	p.add(event.Request{ID: "2", Model: "m", DecodeRate: -1, Outcome: event.OutcomeOK})
	p.close()
	p.run(t.Context())
	if n, why := p.unsent(); n != 1 || !strings.Contains(why, "decode_tokens_per_second") || len(e.requests()) != 1 {
		t.Errorf("%d unsent: %s; taken %+v", n, why, e.requests())
	}
}

// The queue is bounded while the exporter is away.
func TestPushQueueIsBounded(t *testing.T) {
	p := newTestPusher(t, "http://127.0.0.1:1")
	for range maxUnsent + 5 {
		p.add(event.Request{})
	}
	if n, why := p.unsent(); n != maxUnsent+5 || len(p.queue) != maxUnsent || why == "" {
		t.Errorf("%d unsent, %d queued: %s", n, len(p.queue), why)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.run(ctx) // ends
}

func newTestPusher(t *testing.T, raw string) *pusher {
	t.Helper()
	target, err := parseTarget(raw)
	if err != nil {
		t.Fatal(err)
	}
	return newPusher(target)
}

// An engine that is interrupted with us says how fast it was as it ends: that
// is still passed on and pushed.
func TestPushInterrupted(t *testing.T) {
	e := newEndpoint(t, always(0))
	ctx, interrupt := context.WithCancel(t.Context())
	in, engine := io.Pipe()
	out := &testkit.Buffer{}
	var errs bytes.Buffer
	done := make(chan int, 1)
	go func() { done <- pushCommand(ctx, pushFlags{e.URL, "m"}, in, out, &errs) }()
	_, _ = io.WriteString(engine, "some text")
	testkit.Eventually(t, 20*time.Second, func() error {
		if out.String() != "some text" {
			return errors.New("not passed on")
		}
		return nil
	})
	interrupt()
	_, _ = io.WriteString(engine, "\n"+cliOutput(31))
	_ = engine.Close()
	if code := <-done; code != 0 || len(e.requests()) != 1 {
		t.Errorf("exit %d, %+v: %s", code, e.requests(), &errs)
	}
}

// Nobody reads what is passed on: that ends it, as it ends any part of a pipe.
func TestPushOutputClosed(t *testing.T) {
	e := newEndpoint(t, always(0))
	out, w := io.Pipe()
	_ = out.Close()
	var errs bytes.Buffer
	if code := pushCommand(t.Context(), pushFlags{e.URL, "m"}, strings.NewReader(cliOutput(31)), w, &errs); code != 1 || !strings.Contains(errs.String(), "passing on") {
		t.Errorf("exit %d: %s", code, &errs)
	}
}
