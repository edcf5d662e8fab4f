package proxy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"grayfail/collector/engine"
	"grayfail/event"
)

// call is one inference call while it passes.
type call struct {
	proxy    *Proxy
	ctx      context.Context
	client   *client
	observer *engine.Observer
	id       string
	start    time.Time
	upstream string // whom it shares with the other calls in flight
	area     uint64 // of the upstream's load, at the start
	status   int
	ended    bool // the upstream's answer was read to its end
	cut      bool // the upstream broke off
	decoder  *decoder
	stages   *stages     // nil: nobody asks
	dead     atomic.Bool // the observer panicked: it is left alone
}

func (p *Proxy) begin(ctx context.Context, client *client) *call {
	c := &call{proxy: p, ctx: ctx, client: client, id: newID(), start: p.hooks.Now(), upstream: p.config.Upstream.Host}
	c.observer = engine.NewObserver(engine.Call{
		ID: c.id, Source: p.config.Name, Model: p.config.Model, StartNS: c.start.UnixNano(),
	})
	if p.hooks.Stages != nil {
		c.stages = &stages{now: p.hooks.Now}
	}
	p.flight.enter(c, c.start)
	return c
}

// newID makes the id of a call whose answer has none.
func newID() string { return "gf-" + strings.ToLower(rand.Text()[:16]) }

// unix is a time of this call as Unix time; spans are those of the monotonic
// clock, whatever happens to the wall clock meanwhile.
func (c *call) unix(t time.Time) int64 {
	return c.start.UnixNano() + int64(max(0, t.Sub(c.start)))
}

// response begins to look at the answer.
func (c *call) response(r *http.Response) {
	c.status = r.StatusCode
	c.stages.header()
	c.guard(func() { c.observer.Response(r.StatusCode, r.Header) })
	coding := strings.ToLower(strings.TrimSpace(strings.Join(r.Header["Content-Encoding"], ",")))
	if coding != "" && coding != "identity" {
		c.decoder = c.newDecoder(coding)
	}
	r.Body = &answer{ReadCloser: r.Body, call: c, piece: c.proxy.buffers.Get()}
}

// see shows the observer the next bytes of the answer.
func (c *call) see(p []byte, at time.Time) {
	if c.decoder != nil {
		c.decoder.add(p, c.unix(at))
		return
	}
	c.guard(func() { c.observer.ResponseBody(p, c.unix(at)) })
}

// guard runs a piece of observing. Whatever happens in it, the call passes.
func (c *call) guard(observe func()) {
	if c.dead.Load() {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			c.dead.Store(true)
			c.proxy.tally.partial.Add(1)
			c.proxy.tally.panics.Add(1)
			// The value is not logged: it may quote what was read.
			c.proxy.hooks.Log(fmt.Errorf("proxy %s: observer panicked (%T)", c.proxy.config.Name, r))
		}
	}()
	observe()
}

// ending tells who ended the call.
func (c *call) ending() engine.Ending {
	switch left := c.client.gone(c.ctx); {
	case c.ended:
		return engine.EndedClean
	case c.cut:
		return engine.EndedCut
	case left == leftTimeout:
		return engine.EndedTimeout
	case left == leftClient:
		return engine.EndedClient
	}
	return engine.EndedCut
}

// end is the last thing that happens to a call.
func (c *call) end() {
	now := c.proxy.hooks.Now()
	concurrency := c.proxy.flight.leave(c, now)
	ending, blocked := c.ending(), c.client.blocked.Load()
	if c.status >= 300 && c.status < 400 {
		if c.decoder != nil {
			c.decoder.end(func() {})
		}
		return // sent elsewhere: no call to an engine
	}
	var spent *event.HTTPStages
	if c.stages != nil {
		if s := c.stages.take(hostPort(c.proxy.config.Upstream)); len(s.Durations) > 0 {
			c.proxy.hooks.Stages(s)
			spent = &s
		}
	}
	finish := func() {
		var r event.Request
		c.guard(func() {
			c.observer.Blocked(blocked)
			r = c.observer.Finish(ending, c.unix(now))
			// Several sequences of one call share the engine like calls do.
			r.Concurrency = concurrency + float64(c.observer.Choices()-1)
		})
		if c.dead.Load() {
			r = c.bare(ending, now, concurrency)
		}
		r.HTTP = spent
		c.proxy.hooks.Emit(r)
	}
	if c.decoder == nil {
		finish()
		return
	}
	c.decoder.end(finish)
}

// bare is what the wire alone tells.
func (c *call) bare(ending engine.Ending, now time.Time, concurrency float64) event.Request {
	r := event.Request{
		ID: c.id, Source: c.proxy.config.Name, Model: c.proxy.config.Model,
		StartNS: c.start.UnixNano(), EndNS: c.unix(now), Outcome: event.OutcomeOK, Concurrency: concurrency, Status: c.status,
	}
	if r.Model == "" {
		r.Model = "unknown"
	}
	switch {
	case c.status >= 400 || ending == engine.EndedCut:
		r.Outcome = event.OutcomeError
	case ending == engine.EndedTimeout:
		r.Outcome = event.OutcomeTimeout
	case ending == engine.EndedClient:
		r.Outcome = event.OutcomeCanceled
	}
	return r
}

// answer is the body of an answer on its way to the client. What is read is
// copied and looked at when the next piece is asked for: by then the client
// has it, so looking holds nothing back.
type answer struct {
	io.ReadCloser
	call  *call
	piece []byte // of pieceSize; nil after Close
	kept  int
	at    time.Time // when the piece came
}

func (a *answer) Read(p []byte) (int, error) {
	a.look()
	n, err := a.ReadCloser.Read(p)
	a.at = a.call.proxy.hooks.Now()
	if n <= len(a.piece) {
		a.kept = copy(a.piece, p[:n])
	} else {
		a.call.see(p[:n], a.at)
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		a.call.ended = true
		a.call.stages.whole(a.at, time.Duration(a.call.client.blocked.Load()))
	case a.call.client.gone(a.call.ctx) == leftNot:
		a.call.cut = true
		a.call.proxy.tally.errors.Add(1)
	}
	return n, err
}

func (a *answer) look() {
	if a.kept > 0 {
		a.call.see(a.piece[:a.kept], a.at)
		a.kept = 0
	}
}

// Close is called once the last piece is on its way.
func (a *answer) Close() error {
	err := a.ReadCloser.Close()
	a.look()
	if a.piece != nil {
		a.call.proxy.buffers.Put(a.piece)
		a.piece = nil
	}
	return err
}
