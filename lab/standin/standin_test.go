package standin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// engine is a coordinator over two workers on loopback.
func engine(t *testing.T, tokenTime time.Duration) (*Server, *httptest.Server, []net.Listener) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &Coordinator{TokenTime: tokenTime, PromptTokensPerToken: 8}
	var listeners []net.Listener
	for _, sizes := range [][2]int{{4096, 2048}, {9216, 128000}} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = (&Worker{Log: io.Discard}).Serve(ctx, l)
		}()
		t.Cleanup(func() { <-served })
		listeners = append(listeners, l)
		c.Legs = append(c.Legs, Leg{Address: l.Addr().String(), RequestBytes: sizes[0], ReplyBytes: sizes[1]})
	}
	if err := c.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	s := NewServer(c, 2)
	h := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		h.Close()
		c.Close()
		cancel()
	})
	return s, h, listeners
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func TestAnswers(t *testing.T) {
	_, h, _ := engine(t, time.Millisecond)
	for path, body := range map[string]string{
		"/completion":          `{"prompt":"a b c","n_predict":5}`,
		"/v1/completions":      `{"prompt":"a b c","max_tokens":5}`,
		"/v1/chat/completions": `{"messages":[{},{},{}],"max_tokens":5}`,
	} {
		status, answer := post(t, h.URL+path, body)
		var got struct {
			Model   string  `json:"model"`
			Timings timings `json:"timings"`
		}
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			t.Fatalf("%s: %v: %s", path, err, answer)
		}
		if status != 200 || got.Model != Name || got.Timings.PredictedN != 5 || got.Timings.PromptN != 4 || got.Timings.PredictedMS <= 0 {
			t.Errorf("%s: status %d, %+v", path, status, got)
		}
	}
	if status, answer := post(t, h.URL+"/completion", `{`); status != 400 || !strings.Contains(answer, `"error"`) {
		t.Errorf("bad JSON: %d %s", status, answer)
	}
}

// TestStreams holds the shapes that a proxy has to tell apart.
func TestStreams(t *testing.T) {
	_, h, _ := engine(t, time.Millisecond)
	for _, c := range []struct {
		path, body    string
		events        int    // with role, usage and end
		last, timings string // what the last event is, and which one has timings
	}{
		{"/completion", `{"prompt":"x","n_predict":4,"stream":true}`, 5, `"stop":true`, `"stop":true`},
		{"/v1/completions", `{"prompt":"x","max_tokens":4,"stream":true}`, 6, "[DONE]", `"finish_reason":"length"`},
		{"/v1/chat/completions", `{"max_tokens":4,"stream":true}`, 7, "[DONE]", `"finish_reason":"length"`},
		{"/v1/chat/completions", `{"max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`, 8, "[DONE]", `"choices":[]`},
	} {
		status, answer := post(t, h.URL+c.path, c.body)
		events := strings.Split(strings.TrimSpace(answer), "\n\n")
		if status != 200 || len(events) != c.events || !strings.Contains(events[len(events)-1], c.last) {
			t.Errorf("%s %s: status %d, %d events, want %d, the last with %s:\n%s", c.path, c.body, status, len(events), c.events, c.last, answer)
		}
		for _, e := range events {
			if strings.Contains(e, `"timings"`) != strings.Contains(e, c.timings) {
				t.Errorf("%s %s: timings in the wrong place: %s", c.path, c.body, e)
			}
		}
	}
}

// TestLostWorker: an answer fails, the server says that it cannot go on.
func TestLostWorker(t *testing.T) {
	s, h, _ := engine(t, time.Millisecond)
	s.Coordinator.conns[1].Close()
	status, answer := post(t, h.URL+"/completion", `{"prompt":"x"}`)
	if status != 500 || !strings.Contains(answer, "worker") {
		t.Errorf("status %d: %s", status, answer)
	}
	if err := <-s.Failed(); err == nil {
		t.Error("no reason given")
	}
}

// TestPacer: late wake-ups are made up for, but not without bound.
func TestPacer(t *testing.T) {
	p := pacer{debt: time.Hour}
	p.work(time.Microsecond)
	if p.debt > maxDebt {
		t.Errorf("debt of %v", p.debt)
	}
}

func FuzzReadRequest(f *testing.F) {
	var good bytes.Buffer
	_ = writeRequest(&good, cmdCompute, make([]byte, 40))
	f.Add(good.Bytes())
	f.Add([]byte{3, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, data []byte) {
		_, payload, err := readRequest(bytes.NewReader(data), computeHead)
		if len(payload) > computeHead {
			t.Errorf("kept %d bytes", len(payload))
		}
		if errors.Is(err, io.EOF) && len(data) != 0 {
			t.Error("a cut request counts as a clean end")
		}
	})
}

func FuzzReadReply(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 0, 0, 0, 0, 1, 2})
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		if n, err := readReply(bytes.NewReader(data)); err == nil && n > len(data)-8 {
			t.Errorf("a reply of %d bytes out of %d", n, len(data))
		}
	})
}
