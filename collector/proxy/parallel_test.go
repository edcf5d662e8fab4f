package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"grayfail/event"
)

// clock is set by the test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1_796_077_175, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// TestParallel: 32 streams at once, each told apart.
func TestParallel(t *testing.T) {
	const streams = 32
	at := newClock()
	var begun sync.WaitGroup
	begun.Add(streams)
	goOn := make(chan struct{})
	l := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", events)
		say(w, role)
		begun.Done()
		<-goOn
		for range 50 {
			say(w, chunk)
		}
		say(w, finish+done)
	}, func(_ *Config, h *Hooks) { h.Now = at.Now })
	want := role + strings.Repeat(chunk, 50) + finish + done
	var clients sync.WaitGroup
	for range streams {
		clients.Go(func() {
			response := do(t, post(within(t), t, l.address, "/v1/chat/completions", strings.NewReader(`{"model":"asked"}`)))
			if body, err := io.ReadAll(response.Body); err != nil || string(body) != want {
				t.Errorf("%d bytes, %v", len(body), err)
			}
		})
	}
	begun.Wait()
	if got := l.proxy.InFlight(); len(got) > 2 || got["asked"]+got["m"] != streams {
		t.Errorf("in flight %v", got)
	}
	at.advance(time.Second)
	close(goOn)
	clients.Wait()
	for range streams {
		r := l.emitted()
		if r.Outcome != event.OutcomeOK || r.Model != "m" || r.GeneratedTokens != 60 || r.Concurrency != streams || r.EndNS-r.StartNS != int64(time.Second) {
			t.Errorf("record %+v", r)
		}
	}
	if got := l.proxy.InFlight(); len(got) != 0 {
		t.Errorf("in flight at the end %v", got)
	}
}

// TestFlight: the time-weighted number of calls over each call's life.
func TestFlight(t *testing.T) {
	start := time.Unix(1_796_077_175, 0)
	f := newFlight()
	f.loads[""] = &load{at: start, area: ^uint64(0) - 1000} // about to wrap
	calls := make(map[string]*call)
	for _, step := range []struct {
		atMS  int
		enter string
		leave string
		want  float64
	}{
		{0, "a", "", 0},
		{100, "b", "", 0},
		{200, "", "a", 1.5},        // alone for half of it
		{300, "c", "", 0},          // b, c
		{250, "d", "", 0},          // a clock read late: counted from 300 on
		{500, "", "b", 2.25},       // 100 ms with a, 100 alone, 200 with c and d
		{500, "", "c", 3},          // b, c, d all the time
		{550, "e", "", 0},          // d, e
		{550, "", "e", 2},          // no time at all
		{600, "", "d", 700. / 350}, // 200 ms of three, then 100 alone
	} {
		now := start.Add(time.Duration(step.atMS) * time.Millisecond)
		if step.enter != "" {
			c := &call{start: now}
			f.enter(c, now)
			calls[step.enter] = c
			continue
		}
		if got := f.leave(calls[step.leave], now); got != step.want {
			t.Errorf("at %d ms, %s: %g, want %g", step.atMS, step.leave, got, step.want)
		}
	}
}

// TestPanicContained: a defect in the observing harms no call.
func TestPanicContained(t *testing.T) {
	for status, want := range map[int]event.Outcome{200: event.OutcomeOK, 500: event.OutcomeError} {
		l := serve(t, plain(200, nil, ""), nil)
		c := l.proxy.begin(t.Context(), &client{ResponseWriter: nil, now: time.Now})
		c.status, c.ended = status, true
		c.guard(func() { panic("a secret") })
		c.guard(func() { t.Error("used again") })
		c.end()
		if r := l.emitted(); r.Outcome != want || r.ID != c.id || r.Model != "unknown" || r.Concurrency != 1 {
			t.Errorf("record %+v", r)
		}
		if s := l.proxy.Status(); s.Lost != 1 {
			t.Errorf("status %+v", s)
		}
		if texts := l.problems.texts(); len(texts) != 1 || strings.Contains(texts[0], "secret") {
			t.Errorf("logged %q", texts)
		}
	}
}

// TestRedirect: the client is sent elsewhere, so no engine was called.
func TestRedirect(t *testing.T) {
	l := serve(t, plain(307, http.Header{"Location": {"/x"}, "Content-Encoding": {"gzip"}}, ""), nil)
	if got := do(t, post(within(t), t, l.address, "/completion", nil)).StatusCode; got != 307 {
		t.Errorf("status %d", got)
	}
	l.noneEmitted()
	if got := l.proxy.InFlight(); len(got) != 0 {
		t.Errorf("in flight %v", got)
	}
}
