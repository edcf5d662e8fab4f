package proxy

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"time"
)

// rewrite aims a request at the upstream and changes nothing else.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(p.config.Upstream)
	// Undo what ReverseProxy does for the benefit of others: it drops what it
	// cannot parse of the query, and the Forwarded headers.
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = values
		}
	}
	if !ownHost(r.In) {
		r.Out.Host = r.In.Host
	}
	// The server fills in the trailer when the body has ended; the same map
	// lets the transport see it then.
	r.Out.Trailer = r.In.Trailer
}

// ownHost says that the Host header names this listener, by whatever name: it
// has the listener's port. The upstream then gets its own name, as it would
// from the same client without us (virtual hosts, TLS names and Ollama's
// check of the Host need that). Any other Host was chosen by somebody and
// passes unchanged.
func ownHost(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return true
	}
	_, own, err := net.SplitHostPort(local.String())
	if err != nil {
		return true // a unix socket: no client can name it
	}
	_, asked, err := net.SplitHostPort(r.Host)
	if err != nil {
		asked = "80"
		if r.TLS != nil {
			asked = "443"
		}
	}
	return asked == own
}

// newTransport opens a connection for each request, like nginx does by
// default. Reuse would cost calls: llama-server (b11669) promises
// "Keep-Alive: timeout=5" and closes after each streamed answer, uvicorn (vLLM,
// SGLang) after 5 s; a POST sent into that moment is lost, and cannot be
// repeated without asking the engine twice.
func newTransport(config *tls.Config) *http.Transport {
	return &http.Transport{
		// No Proxy: the environment does not decide where an upstream is.
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: 10 * time.Second,
		// Accept-Encoding is the client's affair, and so is the decoding.
		DisableCompression: true,
		// Not DisableKeepAlives: it would tell the upstream so in a header.
		MaxIdleConnsPerHost:   -1,
		ExpectContinueTimeout: time.Second,
		ReadBufferSize:        16 << 10,
	}
}

// response looks at an answer's header before it goes on.
func (p *Proxy) response(r *http.Response) error {
	ps := r.Request.Context().Value(passageKey{}).(*passage)
	p.health.attempt(nil)
	ps.client.like(r)
	ps.question.overtaken(ps.protocol)
	if ps.call != nil && r.StatusCode != http.StatusSwitchingProtocols {
		ps.call.response(r)
	}
	return nil
}

// failed answers in the upstream's place when it did not. The answer says
// which end failed, and no address.
func (p *Proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	status, text := http.StatusBadGateway, "502: the inference server cannot be reached or broke off\n"
	ps := r.Context().Value(passageKey{}).(*passage)
	switch ps.client.gone(r.Context()) {
	case leftNot:
		p.unreached(err)
	case leftTimeout:
		status, text = http.StatusGatewayTimeout, "504: the inference server did not answer within the time limit\n"
		ps.question.overtaken(ps.protocol)
	}
	p.hooks.Log(err)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // a client that is gone needs no answer
}
