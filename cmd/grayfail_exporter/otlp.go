package main

import (
	"context"
	"errors"
	"sync"

	"github.com/rs/zerolog"

	"grayfail/collector/otlp"
	"grayfail/event"
)

// otlpSet holds the receiver of traces. Reload keeps it when its addresses did
// not change; its counters go on over all receivers there were.
type otlpSet struct {
	log  zerolog.Logger
	emit func(event.Request)

	mu      sync.Mutex
	cfg     otlpConfig
	running *runningOTLP // nil for none
	before  otlp.Stats   // of those that have ended
	closed  bool         // the exporter stops: nothing is opened any more
}

type runningOTLP struct {
	receiver *otlp.Receiver
	stop     context.CancelFunc
	done     chan struct{}
	err      error // why it ended by itself; read after done
}

func newOTLPSet(log zerolog.Logger, emit func(event.Request)) *otlpSet {
	return &otlpSet{log: log, emit: emit}
}

// apply makes the receiver that of want. The old one ends first, because both
// may share an address; when a listener cannot be opened the old one is back.
func (s *otlpSet) apply(want otlpConfig) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("the exporter is stopping")
	}
	if want == s.cfg {
		return nil
	}
	old := s.cfg
	s.end()
	if err := s.open(want); err != nil {
		return errors.Join(err, s.open(old))
	}
	return nil
}

func (s *otlpSet) open(cfg otlpConfig) error {
	s.cfg = cfg
	if cfg == (otlpConfig{}) {
		return nil
	}
	r := otlp.New(otlp.Config{HTTP: cfg.HTTP, GRPC: cfg.GRPC}, otlp.Hooks{Emit: s.emit})
	if err := r.Listen(); err != nil {
		s.cfg = otlpConfig{}
		return err
	}
	web, rpc := r.Addrs()
	s.log.Info().Stringer("http", web).Stringer("grpc", rpc).Msg("otlp receiver listens")
	ctx, cancel := context.WithCancel(context.Background())
	running := &runningOTLP{receiver: r, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(running.done)
		running.err = r.Serve(ctx)
	}()
	s.running = running
	return nil
}

// end stops the receiver and keeps what it counted; mu is held.
func (s *otlpSet) end() {
	if s.running == nil {
		return
	}
	s.running.stop()
	<-s.running.done
	s.before = sum(s.before, s.running.receiver.Stats())
	s.running = nil
}

func (s *otlpSet) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.end()
}

// status says whether the receiver ended by itself.
func (s *otlpSet) status() []event.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return nil
	}
	select {
	case <-s.running.done:
		return []event.Problem{{Reason: "otlp_stopped", Detail: s.running.err.Error()}}
	default:
		return nil
	}
}

func (s *otlpSet) stats() otlp.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return s.before
	}
	return sum(s.before, s.running.receiver.Stats())
}

func sum(a, b otlp.Stats) otlp.Stats {
	return otlp.Stats{
		Requests: a.Requests + b.Requests, Unknown: a.Unknown + b.Unknown, Rejected: a.Rejected + b.Rejected,
		Repeated: a.Repeated + b.Repeated, Malformed: a.Malformed + b.Malformed, TooLarge: a.TooLarge + b.TooLarge, Limited: a.Limited + b.Limited,
	}
}
