package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"grayfail/collector/llamalog"
	"grayfail/event"
)

type pushFlags struct {
	url   string
	model string
}

const (
	// stopGrace: an interrupt reaches the engine too, and its last lines are
	// the ones that tell how fast it was.
	stopGrace = 5 * time.Second
	// pushGrace is how long the exporter is tried after the engine's output
	// has ended.
	pushGrace = 5 * time.Second
	pushRetry = 500 * time.Millisecond
	maxUnsent = 10_000
	maxBatch  = 1000
)

// pushCommand passes an engine's output on and pushes the requests found in
// it: 0 when all were taken, 1 when not or when the output could not be passed
// on. What becomes of the push never holds the output up.
func pushCommand(ctx context.Context, f pushFlags, in io.Reader, stdout, stderr io.Writer) int {
	target, err := parseTarget(f.url)
	if err != nil {
		fmt.Fprintf(stderr, "grayfail_exporter: %v\n", err)
		return exitUsage
	}
	if strings.TrimSpace(f.model) == "" {
		fmt.Fprintln(stderr, "grayfail_exporter: --model is empty: say which model the engine runs")
		return exitUsage
	}
	reading, stopReading := context.WithCancel(context.WithoutCancel(ctx))
	defer stopReading()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, stopReading) })()

	p := newPusher(target)
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSending()
	sent := make(chan struct{})
	go func() { defer close(sent); p.run(sending) }()

	code := exitOK
	err = llamalog.PassThrough(reading, in, stdout, llamalog.Config{Name: "push", Model: f.model},
		llamalog.Hooks{Emit: p.add})
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(stderr, "grayfail_exporter: push: %v\n", err)
		code = exitFail
	}
	p.close()
	defer time.AfterFunc(pushGrace, stopSending).Stop()
	<-sent
	if n, why := p.unsent(); n > 0 {
		fmt.Fprintf(stderr, "grayfail_exporter: push: %d requests were not pushed to %s: %s\n", n, target.Redacted(), why)
		code = exitFail
	}
	return code
}

func parseTarget(raw string) (*url.URL, error) {
	target, err := url.Parse(raw)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return nil, errors.New("--url is no URL such as http://127.0.0.1:10550/api/v1/requests")
	}
	return target, nil
}

// A pusher sends requests from a queue, so that nothing waits for the exporter.
type pusher struct {
	target *url.URL
	client *http.Client
	wake   chan struct{}

	mu     sync.Mutex // guards what follows
	queue  []event.Request
	closed bool
	lost   int
	why    string
}

func newPusher(target *url.URL) *pusher {
	return &pusher{
		target: target, wake: make(chan struct{}, 1),
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConns: 1, DisableCompression: true}},
	}
}

// add queues a request.
func (p *pusher) add(r event.Request) {
	p.mu.Lock()
	if len(p.queue) < maxUnsent {
		p.queue = append(p.queue, r)
	} else {
		p.lost, p.why = p.lost+1, cmp.Or(p.why, "too many wait")
	}
	p.mu.Unlock()
	p.nudge()
}

// close says that no more will be added.
func (p *pusher) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.nudge()
}

func (p *pusher) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// unsent counts the requests that the exporter has not taken.
func (p *pusher) unsent() (n int, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost + len(p.queue), p.why
}

// run sends what is queued until that is all and no more comes, or ctx ends.
// An exporter that is away is tried again; ids keep a record that it took
// unheard from counting twice.
func (p *pusher) run(ctx context.Context) {
	defer p.client.CloseIdleConnections()
	for {
		p.mu.Lock()
		batch := p.queue[:min(len(p.queue), maxBatch)]
		done := p.closed && len(batch) == 0
		p.mu.Unlock()
		if done {
			return
		}
		var retry <-chan time.Time
		if len(batch) > 0 {
			if again := p.send(ctx, batch); !again {
				continue
			}
			retry = time.After(pushRetry)
		}
		select {
		case <-ctx.Done():
			return
		case <-retry:
		case <-p.wake:
		}
	}
}

// send posts a batch and takes it off the queue, unless it is to be tried
// again.
func (p *pusher) send(ctx context.Context, batch []event.Request) (again bool) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	for i := range batch {
		_ = enc.Encode(&batch[i]) // numbers and strings into memory
	}
	refused, err := p.post(ctx, &body)
	p.mu.Lock()
	defer p.mu.Unlock()
	var status statusError
	if err != nil {
		p.why = err.Error()
		if !errors.As(err, &status) || status.code >= 500 || status.code == http.StatusTooManyRequests {
			return true
		}
		refused = len(batch)
	}
	p.lost += refused
	p.queue = p.queue[len(batch):]
	return false
}

type statusError struct {
	code   int
	detail string
}

func (e statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", e.code, e.detail))
}

// post sends JSON lines; refused counts those of them that were not taken.
func (p *pusher) post(ctx context.Context, body io.Reader) (refused int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.target.String(), body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := p.client.Do(req)
	if err != nil {
		var reason *url.Error // without the URL, which is said once
		if errors.As(err, &reason) {
			err = reason.Err
		}
		return 0, err
	}
	defer resp.Body.Close()
	var answer struct {
		Errors []struct {
			Line  int    `json:"line"`
			Error string `json:"error"`
		} `json:"errors"`
		MoreErrors int `json:"more_errors"`
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	understood := json.Unmarshal(text, &answer) == nil
	detail := http.StatusText(resp.StatusCode)
	if len(answer.Errors) > 0 {
		detail = answer.Errors[0].Error
	}
	switch {
	case resp.StatusCode/100 == 2:
		return 0, nil
	case resp.StatusCode == http.StatusBadRequest && understood && len(answer.Errors) > 0 && answer.Errors[0].Line > 0:
		p.note(statusError{resp.StatusCode, detail})
		return len(answer.Errors) + answer.MoreErrors, nil
	}
	return 0, statusError{resp.StatusCode, detail}
}

// note remembers why something was refused.
func (p *pusher) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.why = err.Error()
}
