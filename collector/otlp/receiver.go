package otlp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	collect "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"golang.org/x/time/rate"

	"grayfail/event"
)

// Config of the receiver; zero values take the defaults in brackets.
type Config struct {
	HTTP string // address to listen on for HTTP; "" for not at all
	GRPC string // the same for gRPC
	// TLS of both listeners; nil for none.
	TLS *tls.Config

	MaxBody   int     // bytes in one export, unpacked [8 MiB]
	PerSecond float64 // spans a second, all senders together [20000]
	Burst     int     // spans at once [40000]
	Remember  int     // spans kept to recognise repeats [16384]
}

func (c Config) withDefaults() Config {
	if c.MaxBody == 0 {
		c.MaxBody = 8 << 20
	}
	if c.PerSecond == 0 {
		c.PerSecond = 20_000
	}
	if c.Burst == 0 {
		c.Burst = 40_000
	}
	if c.Remember == 0 {
		c.Remember = 16_384
	}
	return c
}

// Hooks connect the receiver to the rest.
type Hooks struct {
	// Emit takes each request. It is called from many goroutines and must not
	// block.
	Emit func(event.Request)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Stats counts since the start.
type Stats struct {
	Requests  uint64 // spans that were requests
	Unknown   uint64 // spans of something else, ignored
	Rejected  uint64 // spans of requests with values that cannot be
	Repeated  uint64 // spans sent again, ignored
	Malformed uint64 // exports that could not be read
	TooLarge  uint64 // exports beyond MaxBody
	Limited   uint64 // exports refused for now: too many spans a second, or too many at once
}

// A Receiver takes trace exports. Safe for concurrent use.
type Receiver struct {
	config Config
	hooks  Hooks
	limit  *rate.Limiter
	slots  chan struct{} // bodies in memory

	httpListener, grpcListener net.Listener

	mu     sync.Mutex // guards what follows
	memory *memory
	stats  Stats
}

// New makes a receiver; it listens with Listen or Serve.
func New(config Config, hooks Hooks) *Receiver {
	if hooks.Now == nil {
		hooks.Now = time.Now
	}
	config = config.withDefaults()
	return &Receiver{
		config: config, hooks: hooks, memory: newMemory(config.Remember),
		limit: rate.NewLimiter(rate.Limit(config.PerSecond), config.Burst),
		slots: make(chan struct{}, maxBodies),
	}
}

// Stats returns the counters.
func (r *Receiver) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

func (r *Receiver) count(counter func(*Stats) *uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*counter(&r.stats)++
}

// errBusy: the same export may be sent again in a moment.
var errBusy = errors.New("too many spans for now")

// retryAfter is when to send again.
const retryAfter = time.Second

// maxMessage bounds what a partial success says.
const maxMessage = 500

// take finds the requests of an export. What it answers is the protocol's: a
// span that is no request was taken, one with impossible values is rejected
// and must not be sent again. errBusy refuses the whole.
func (r *Receiver) take(export *collect.ExportTraceServiceRequest) (*collect.ExportTraceServiceResponse, error) {
	spans := 0
	for _, resource := range export.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			spans += len(scope.GetSpans())
		}
	}
	now := r.hooks.Now()
	if !r.limit.AllowN(now, min(spans, r.config.Burst)) {
		r.count(func(s *Stats) *uint64 { return &s.Limited })
		return nil, errBusy
	}
	var rejected int64
	var why strings.Builder
	for _, resource := range export.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				a := &attributes{list: span.GetAttributes()}
				if !isRequest(a) {
					r.count(func(s *Stats) *uint64 { return &s.Unknown })
					continue
				}
				req, err := request(span, a, now.UnixNano())
				if err != nil {
					rejected++
					r.count(func(s *Stats) *uint64 { return &s.Rejected })
					if line := fmt.Sprintf("%s: %v; ", name(span), err); why.Len()+len(line) <= maxMessage {
						why.WriteString(line)
					}
					continue
				}
				if r.known(span.GetTraceId(), span.GetSpanId()) {
					continue
				}
				r.hooks.Emit(req)
			}
		}
	}
	answer := &collect.ExportTraceServiceResponse{}
	if rejected > 0 {
		answer.PartialSuccess = &collect.ExportTracePartialSuccess{
			RejectedSpans: rejected, ErrorMessage: strings.TrimSuffix(why.String(), "; "),
		}
	}
	return answer, nil
}

// known counts a request, or a repeated one.
func (r *Receiver) known(traceID, spanID []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory.repeated(traceID, spanID) {
		r.stats.Repeated++
		return true
	}
	r.stats.Requests++
	return false
}
