package proxycost

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// engine streams chunks, one each interval, to whoever asks.
type engine struct {
	http.Server
	address  string
	epoch    time.Time
	chunks   int
	interval time.Duration
}

const (
	before = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1796077175,"model":"m","choices":[{"index":0,"delta":{"content":"`
	after  = `"},"finish_reason":null}]}`
	last   = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1796077175,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	done   = `data: [DONE]`
)

func newEngine() (*engine, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &engine{address: l.Addr().String(), epoch: time.Now()}
	e.Handler = http.HandlerFunc(e.answer)
	go func() { _ = e.Serve(l) }() // http.ErrServerClosed
	return e, nil
}

func (e *engine) answer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	_ = control.Flush()
	tick := time.NewTicker(e.interval)
	defer tick.Stop()
	for range e.chunks {
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
		// Like an engine, one write for each chunk.
		_, _ = fmt.Fprintf(w, "%s%d%s\n\n", before, time.Since(e.epoch).Nanoseconds(), after)
		_ = control.Flush()
	}
	_, _ = io.WriteString(w, last+"\n\n"+done+"\n\n")
}

// run has streams answers at once through an address, and returns how long
// each chunk was on its way.
func (e *engine) run(ctx context.Context, address string, streams int) ([]time.Duration, error) {
	all := make([][]time.Duration, streams)
	errs := make([]error, streams)
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	var clients sync.WaitGroup
	for i := range streams {
		clients.Go(func() { all[i], errs[i] = e.client(ctx, transport, address) })
	}
	clients.Wait()
	var took []time.Duration
	for i := range streams {
		if errs[i] != nil {
			return nil, errs[i]
		}
		took = append(took, all[i]...)
	}
	return took, nil
}

func (e *engine) client(ctx context.Context, transport *http.Transport, address string) ([]time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/chat/completions", strings.NewReader(`{"model":"m","stream":true}`))
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	took := make([]time.Duration, 0, e.chunks)
	ended := false
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		now := time.Since(e.epoch)
		line := lines.Text()
		ended = ended || line == done
		sent, ok := strings.CutPrefix(line, before)
		if !ok {
			continue
		}
		ns, err := strconv.ParseInt(strings.TrimSuffix(sent, after), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("a chunk of %s: %w", address, err)
		}
		took = append(took, now-time.Duration(ns))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("the stream of %s: %w", address, err)
	}
	if !ended || len(took) != e.chunks {
		return nil, fmt.Errorf("the stream of %s ended with %d of %d chunks", address, len(took), e.chunks)
	}
	return took, nil
}
