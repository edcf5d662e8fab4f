package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"grayfail/collector/proxy"
	"grayfail/event"
)

// proxySet holds the listening proxies by listen address. A reload swaps the
// handler behind a listener that stays, so no connection is refused meanwhile
// and streams in flight end as they began; so do upgraded connections
// (websockets), which keep their upstream until either end closes them, the
// listener is taken away, or the exporter stops.
type proxySet struct {
	log    zerolog.Logger
	emit   func(event.Request)
	stages func(event.HTTPStages)

	mu      sync.Mutex
	running map[string]*runningProxy
	closed  bool // the exporter stops: nothing is opened any more
}

type runningProxy struct {
	cfg     proxyConfig
	handler atomic.Pointer[proxy.Proxy]
	server  *http.Server
	done    chan struct{}
}

// drainTime is how long streams in flight may go on after a stop. With
// closeTime it stays below 8 s: supervisors kill after ten.
const drainTime = 5 * time.Second

func newProxySet(log zerolog.Logger, emit func(event.Request), stages func(event.HTTPStages)) *proxySet {
	return &proxySet{log: log, emit: emit, stages: stages, running: map[string]*runningProxy{}}
}

// apply makes the running proxies those of want. When a listener cannot be
// opened nothing changes and the error says which.
func (s *proxySet) apply(want []proxyConfig) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("the exporter is stopping")
	}
	next := map[string]*runningProxy{}
	for _, cfg := range want {
		if old := s.running[cfg.Listen]; old != nil {
			next[cfg.Listen] = old
			continue
		}
		p, err := s.open(cfg)
		if err != nil {
			for addr, p := range next {
				if s.running[addr] == nil {
					p.stop()
				}
			}
			return err
		}
		next[cfg.Listen] = p
	}
	for _, cfg := range want {
		if p := next[cfg.Listen]; p.cfg != cfg {
			p.cfg = cfg
			p.handler.Store(p.handler.Load().Replace(s.parts(cfg)))
		}
	}
	for addr, p := range s.running {
		if next[addr] == nil {
			go p.stop()
		}
	}
	s.running = next
	return nil
}

// parts of a proxy, for proxy.New or to replace one.
func (s *proxySet) parts(cfg proxyConfig) (proxy.Config, proxy.Hooks) {
	upstream, err := url.Parse(cfg.Upstream)
	if err != nil { // checked with the configuration
		upstream = &url.URL{Scheme: "http", Host: "invalid"}
	}
	return proxy.Config{
			Name: cfg.Name, Upstream: upstream, Timeout: time.Duration(cfg.RequestTimeout), Model: cfg.Model,
		}, proxy.Hooks{Emit: s.emit, Stages: s.stages, Log: func(err error) {
			s.log.Debug().Err(err).Str("proxy", cfg.Name).Msg("proxy")
		}}
}

func (s *proxySet) open(cfg proxyConfig) (*runningProxy, error) {
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("proxy %s: %w", cfg.Name, err)
	}
	r := &runningProxy{cfg: cfg, done: make(chan struct{})}
	r.handler.Store(proxy.New(s.parts(cfg)))
	r.server = proxy.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.handler.Load().ServeHTTP(w, req)
	}))
	r.server.ErrorLog = slog.NewLogLogger(zerolog.NewSlogHandler(s.log), slog.LevelDebug)
	s.log.Info().Str("proxy", cfg.Name).Stringer("listen", l.Addr()).Str("upstream", withoutPassword(cfg.Upstream)).Msg("proxy listens")
	go func() {
		defer close(r.done)
		if err := r.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error().Err(err).Str("proxy", cfg.Name).Msg("proxy stopped")
		}
	}()
	return r, nil
}

// withoutPassword is an upstream as it may be written down.
func withoutPassword(upstream string) string {
	u, err := url.Parse(upstream)
	if err != nil {
		return ""
	}
	return u.Redacted()
}

func (r *runningProxy) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if r.server.Shutdown(ctx) != nil {
		_ = r.server.Close() // streams beyond the drain time are cut
	}
	_ = r.handler.Load().Shutdown(ctx)
	<-r.done
}

// close stops every proxy and waits for their streams, drainTime at most.
func (s *proxySet) close() {
	s.mu.Lock()
	running := s.running
	s.running = map[string]*runningProxy{}
	s.closed = true
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, p := range running {
		wg.Go(p.stop)
	}
	wg.Wait()
}

// status sums up what the proxies say of their upstreams: problems by reason,
// failed attempts, and calls that passed unseen.
func (s *proxySet) status() (problems []event.Problem, lost uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.running {
		st := p.handler.Load().Status()
		problems = append(problems, st.Problems...)
		lost += st.Lost
	}
	return problems, lost
}

// inFlight counts the requests now in flight, by source and model.
func (s *proxySet) inFlight() []event.InFlight {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []event.InFlight
	for _, p := range s.running {
		for model, n := range p.handler.Load().InFlight() {
			all = append(all, event.InFlight{Source: p.cfg.Name, Model: model, Requests: n})
		}
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i], all[j]
		return a.Source < b.Source || a.Source == b.Source && a.Model < b.Model
	})
	return all
}
