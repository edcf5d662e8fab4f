package runner

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"time"

	"grayfail/collector/engine"
	"grayfail/collector/llamalog"
	"grayfail/event"
	"grayfail/lab/campaign/report"
	"grayfail/lab/campaign/spec"
)

// answer is one request and what it came to.
type answer struct {
	start, end time.Time
	request    report.Request
}

// send makes one request and waits for its end.
func send(ctx context.Context, s *spec.Spec, client *http.Client) answer {
	limited, cancel := context.WithTimeout(ctx, time.Duration(s.Timeout))
	defer cancel()
	a := answer{start: time.Now()}
	var got event.Request
	if len(s.Request.Command) > 0 {
		got = a.run(limited, s.Request.Command)
	} else {
		got = a.ask(limited, client, &s.Request)
	}
	a.end = time.Now()
	if ctx.Err() != nil {
		got.Outcome = event.OutcomeCanceled
	}
	a.request.Outcome = got.Outcome
	latency := a.end.Sub(a.start).Seconds()
	a.request.Latency = &latency
	if got.FirstTokenNS > got.StartNS && got.StartNS > 0 {
		first := float64(got.FirstTokenNS-got.StartNS) / 1e9
		a.request.TTFT = &first
	}
	if got.GeneratedTokens > 0 {
		a.request.Tokens = &got.GeneratedTokens
	}
	for to, rate := range map[**float64]float64{&a.request.Decode: got.DecodeRate, &a.request.Prefill: got.PrefillRate} {
		if rate > 0 {
			*to = &rate
		}
	}
	return a
}

// ask reads the answer as the exporter's proxy would.
func (a *answer) ask(ctx context.Context, client *http.Client, r *spec.Request) event.Request {
	method, body := http.MethodGet, io.Reader(nil)
	if r.Body != "" {
		method, body = http.MethodPost, bytes.NewReader([]byte(r.Body))
	}
	observer := engine.NewObserver(engine.Call{ID: "campaign", Source: "campaign", StartNS: a.start.UnixNano()})
	observer.RequestBody([]byte(r.Body))
	end := func(how engine.Ending) event.Request {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			how = engine.EndedTimeout
		}
		return observer.Finish(how, time.Now().UnixNano())
	}
	req, err := http.NewRequestWithContext(ctx, method, r.URL, body)
	if err != nil {
		return end(engine.EndedCut)
	}
	if r.Body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return end(engine.EndedCut)
	}
	defer resp.Body.Close()
	a.request.HTTPStatus = &resp.StatusCode
	observer.Response(resp.StatusCode, resp.Header)
	piece := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(piece)
		observer.ResponseBody(piece[:n], time.Now().UnixNano())
		if errors.Is(err, io.EOF) {
			return end(engine.EndedClean)
		}
		if err != nil {
			return end(engine.EndedCut)
		}
	}
}

// run runs a command and reads its output as llama-cli's.
func (a *answer) run(ctx context.Context, argv []string) event.Request {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	output, err := cmd.CombinedOutput()
	got := event.Request{Outcome: event.OutcomeOK}
	_ = llamalog.PassThrough(context.WithoutCancel(ctx), bytes.NewReader(output), io.Discard, llamalog.Config{Name: "campaign"},
		llamalog.Hooks{Emit: func(r event.Request) { got = r }}) // a reader in memory does not fail
	got.StartNS, got.FirstTokenNS = 0, 0 // of the output, which was read after the end
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		got.Outcome = event.OutcomeTimeout
	case err != nil:
		got.Outcome = event.OutcomeError
	}
	if cmd.ProcessState != nil {
		code := cmd.ProcessState.ExitCode()
		a.request.ExitCode = &code
	}
	return got
}
