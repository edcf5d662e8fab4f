package proxy

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"sync"
	"time"

	"grayfail/event"
)

// stages notes when the parts of one call to the upstream began and ended. The
// transport tells from goroutines of its own, also after the call is over: it
// goes on dialing when the request is canceled (net/http, Transport.getConn).
type stages struct {
	now func() time.Time

	mu           sync.Mutex
	dns, connect span
	tls          span
	got, wrote   time.Time
	handed       time.Time // the transport had all of the request's body
	first, end   time.Time
	reused       bool          // the connection
	waited       time.Duration // for the client's next piece of the request
	blocked      time.Duration // for the client to take the answer, until end
}

type span struct{ start, end time.Time }

// note keeps the first time: of several addresses dialed at once the winner
// is the one that counts.
func (s *stages) note(t *time.Time) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.IsZero() {
		*t = now
	}
}

func (s *stages) noteOK(t *time.Time, err error) {
	if err == nil {
		s.note(t)
	}
}

func (s *stages) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSStart:             func(httptrace.DNSStartInfo) { s.note(&s.dns.start) },
		DNSDone:              func(i httptrace.DNSDoneInfo) { s.noteOK(&s.dns.end, i.Err) },
		ConnectStart:         func(_, _ string) { s.note(&s.connect.start) },
		ConnectDone:          func(_, _ string, err error) { s.noteOK(&s.connect.end, err) },
		TLSHandshakeStart:    func() { s.note(&s.tls.start) },
		TLSHandshakeDone:     func(_ tls.ConnectionState, err error) { s.noteOK(&s.tls.end, err) },
		GotConn:              s.gotConn,
		WroteRequest:         func(i httptrace.WroteRequestInfo) { s.noteOK(&s.wrote, i.Err) },
		GotFirstResponseByte: func() { s.note(&s.first) },
		Got1xxResponse:       s.got1xx,
	}
}

func (s *stages) gotConn(i httptrace.GotConnInfo) {
	s.note(&s.got)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reused = i.Reused
}

// got1xx: the transport reports the first byte once, be it that of a 1xx,
// which says nothing about the answer.
func (s *stages) got1xx(int, textproto.MIMEHeader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = time.Time{}
	return nil
}

// header is called when the answer's header is there: after a 1xx that is the
// earliest we know of it.
func (s *stages) header() {
	if s == nil {
		return
	}
	s.note(&s.first)
}

// ask adds time in which the client had the next piece of the request.
func (s *stages) ask(d time.Duration) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waited += d
}

// given is called when the transport has all of the request's body.
func (s *stages) given() {
	if s == nil {
		return
	}
	s.note(&s.handed)
}

// whole is called when the answer was read to its end.
func (s *stages) whole(at time.Time, blocked time.Duration) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end.IsZero() {
		s.end, s.blocked = at, blocked
	}
}

// take sums up what has ended by now; what is told later changes nothing.
//
// The answer may come before the transport says that it wrote the request: a
// quick upstream is faster than our goroutine. Then the write ended when the
// last piece was handed over. An answer that did not wait even for that leaves
// write and first_byte out: neither has an end of its own.
func (s *stages) take(upstream string) event.HTTPStages {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := event.HTTPStages{Upstream: upstream, Reused: s.reused, Durations: make(map[event.HTTPStage]time.Duration, len(event.HTTPStageNames))}
	put := func(stage event.HTTPStage, start, end time.Time, less time.Duration) {
		if !start.IsZero() && !end.IsZero() {
			out.Durations[stage] = max(0, end.Sub(start)-less)
		}
	}
	put(event.HTTPStageDNS, s.dns.start, s.dns.end, 0)
	put(event.HTTPStageConnect, s.connect.start, s.connect.end, 0)
	put(event.HTTPStageTLS, s.tls.start, s.tls.end, 0)
	wrote := s.wrote
	if !s.first.IsZero() && (wrote.IsZero() || s.first.Before(wrote)) {
		wrote = s.handed
	}
	if s.first.IsZero() || !s.first.Before(wrote) {
		put(event.HTTPStageWrite, s.got, wrote, s.waited)
		put(event.HTTPStageFirstByte, wrote, s.first, 0)
	}
	put(event.HTTPStageRead, s.first, s.end, s.blocked)
	return out
}

// traced is the transport with a trace on inference calls. It stands below
// ReverseProxy and not in the context given to it: of two Got1xxResponse the
// older one's error counts (httptrace, compose), and that stays ReverseProxy's.
type traced struct{ http.RoundTripper }

func (t traced) RoundTrip(r *http.Request) (*http.Response, error) {
	if ps, ok := r.Context().Value(passageKey{}).(*passage); ok && ps.call != nil && ps.call.stages != nil {
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), ps.call.stages.trace()))
	}
	return t.RoundTripper.RoundTrip(r)
}

// hostPort names an upstream: never its user, password or path.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
		if u.Scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}
