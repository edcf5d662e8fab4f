package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"grayfail/collector/engine"
	"grayfail/event"
)

// Config of one proxy: one upstream.
type Config struct {
	Name     string        // the source of its requests
	Upstream *url.URL      // http or https; a path is put before the client's
	Timeout  time.Duration // of an inference call from start to end; 0: none
	Model    string        // "" takes what the answer or the request says
	TLS      *tls.Config   // for https upstreams; nil: the system's defaults
}

// Hooks connect a proxy to the rest.
type Hooks struct {
	// Emit takes each finished inference call. It is called from many
	// goroutines and must not block: the end of an answer waits for it.
	Emit func(event.Request)
	// Stages takes where the time of each inference call went on the
	// upstream's side, once for a call of which any stage came to its end,
	// before Emit. Like Emit it must not block. nil: nothing is traced.
	Stages func(event.HTTPStages)
	// Now is the clock; nil means time.Now. Durations use its monotonic part.
	Now func() time.Time
	// Log takes what went wrong with an upstream or an observation, for a
	// debug log; nil drops it. It never carries a prompt or an answer.
	Log func(error)
}

// Why a proxy itself ends what it passes.
var (
	// ErrTimeout: a call took longer than Config.Timeout.
	ErrTimeout = errors.New("time limit of the request reached")
	// ErrShutdown: Shutdown was called.
	ErrShutdown = errors.New("the proxy is shutting down")
)

// Proxy is the handler. Safe for concurrent use.
type Proxy struct {
	config    Config
	hooks     Hooks
	reverse   *httputil.ReverseProxy
	transport *http.Transport
	health    health
	*shared
	// limit puts the time limit on a call.
	limit func(context.Context, time.Duration, error) (context.Context, context.CancelFunc)
}

// shared is what a proxy has in common with those that it replaced.
type shared struct {
	flight  *flight
	tally   tally
	buffers *buffers
	closing context.Context
	close   context.CancelCauseFunc
	calls   sync.WaitGroup // what is being passed, until it is emitted
}

// New makes a proxy; it opens nothing until a request comes.
func New(config Config, hooks Hooks) *Proxy {
	s := &shared{flight: newFlight(), buffers: newBuffers()}
	s.closing, s.close = context.WithCancelCause(context.Background())
	return newProxy(config, hooks, s)
}

// Replace makes a proxy for the requests to come; p goes on with those it has,
// upgraded connections too. Both count together what is in flight and what
// went wrong, and Shutdown of the new one ends what either passes.
func (p *Proxy) Replace(config Config, hooks Hooks) *Proxy { return newProxy(config, hooks, p.shared) }

func newProxy(config Config, hooks Hooks, s *shared) *Proxy {
	if hooks.Now == nil {
		hooks.Now = time.Now
	}
	if hooks.Log == nil {
		hooks.Log = func(error) {}
	}
	if hooks.Emit == nil {
		hooks.Emit = func(event.Request) {}
	}
	p := &Proxy{config: config, hooks: hooks, transport: newTransport(config.TLS), shared: s, limit: context.WithTimeoutCause}
	p.reverse = &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		Transport:      traced{p.transport},
		FlushInterval:  -1, // each piece goes on as it came
		BufferPool:     p.buffers,
		ModifyResponse: p.response,
		ErrorHandler:   p.failed,
		ErrorLog:       log.New(logWriter(hooks.Log), "", 0),
	}
	return p
}

// ServeHTTP passes one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.calls.Add(1)
	defer p.calls.Done()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(p.closing, func() { cancel(ErrShutdown) })()

	ps := &passage{client: &client{ResponseWriter: w, now: p.hooks.Now}, protocol: r.ProtoMajor}
	ctx = context.WithValue(ctx, passageKey{}, ps)
	if engine.Inference(r.Method, r.URL.Path) {
		if p.config.Timeout > 0 {
			var stop context.CancelFunc
			ctx, stop = p.limit(ctx, p.config.Timeout, ErrTimeout)
			defer stop()
		}
		ps.call = p.begin(ctx, ps.client)
		defer ps.call.end()
	}
	r = r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		ps.question = &question{ReadCloser: r.Body, client: ps.client, call: ps.call}
		r.Body = ps.question
		defer context.AfterFunc(ctx, ps.question.giveUp)()
	}
	p.reverse.ServeHTTP(ps.client, r)
}

// passage is one request on its way through.
type passage struct {
	client   *client
	call     *call     // nil: nothing is measured
	question *question // nil: no body
	protocol int       // the client's: HTTP/1 or 2
}

type passageKey struct{}

// InFlight counts the inference calls being served, by model: the configured
// one, else what the answer or the request has said so far, else "unknown".
func (p *Proxy) InFlight() map[string]int { return p.flight.models() }

// Shutdown ends what is still being passed (also upgraded connections, which
// http.Server.Shutdown leaves alone), and waits until every call is emitted
// or ctx ends. Call it after the listeners' http.Server.Shutdown.
func (p *Proxy) Shutdown(ctx context.Context) error {
	p.close(ErrShutdown)
	p.transport.CloseIdleConnections()
	done := make(chan struct{})
	go func() {
		p.calls.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// logWriter hands ReverseProxy's messages on.
type logWriter func(error)

func (l logWriter) Write(line []byte) (int, error) {
	l(errors.New(strings.TrimSpace(string(line))))
	return len(line), nil
}
