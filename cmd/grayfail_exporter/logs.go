package main

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"grayfail/collector/llamalog"
	"grayfail/event"
	"grayfail/internal/atomicfile"
)

// logSet holds the followers of engine logs. Reload keeps those whose
// configuration did not change.
type logSet struct {
	emit     func(event.Request)
	stateDir string // "" keeps no offsets: every start begins at the end

	mu      sync.Mutex
	running map[llamaLogConfig]*runningLog
}

type runningLog struct {
	follower *llamalog.Follower
	stop     context.CancelFunc
	done     chan struct{}
}

func newLogSet(stateDir string, emit func(event.Request)) *logSet {
	return &logSet{emit: emit, stateDir: stateDir, running: map[llamaLogConfig]*runningLog{}}
}

// apply makes the followers those of want. What a follower cannot do stands in
// its status; nothing fails here.
func (s *logSet) apply(want []llamaLogConfig) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[llamaLogConfig]*runningLog{}
	for _, cfg := range want {
		if old := s.running[cfg]; old != nil {
			next[cfg] = old
		}
	}
	for cfg, l := range s.running {
		if next[cfg] == nil {
			l.end() // before another one may use the same state
		}
	}
	for _, cfg := range want {
		if next[cfg] == nil {
			next[cfg] = s.follow(cfg)
		}
	}
	s.running = next
}

func (s *logSet) follow(cfg llamaLogConfig) *runningLog {
	hooks := llamalog.Hooks{Emit: s.emit}
	if s.stateDir != "" {
		path := filepath.Join(s.stateDir, "llamalog-"+url.PathEscape(cfg.Name)+".state")
		hooks.Load = func() ([]byte, error) { return readState(path) }
		hooks.Save = func(state []byte) error { return writeState(path, state) }
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &runningLog{
		follower: llamalog.New(llamalog.FollowConfig{Name: cfg.Name, Path: cfg.Path, Model: cfg.Model}, hooks),
		stop:     cancel, done: make(chan struct{}),
	}
	go func() {
		defer close(l.done)
		_ = l.follower.Run(ctx) // the context's error and no other
	}()
	return l
}

func (l *runningLog) end() {
	l.stop()
	<-l.done
}

// close ends every follower; their offsets are saved.
func (s *logSet) close() { s.apply(nil) }

func (s *logSet) status() (problems []event.Problem, lost uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.running {
		st := l.follower.Status()
		problems = append(problems, st.Problems...)
		lost += st.Lost
	}
	return problems, lost
}

func (s *logSet) inFlight() []event.InFlight {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []event.InFlight
	for cfg, l := range s.running {
		for model, n := range l.follower.InFlight() {
			all = append(all, event.InFlight{Source: cfg.Name, Model: model, Requests: n})
		}
	}
	return all
}

// readState returns nil when nothing was saved yet.
func readState(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// writeState replaces the file whole: a kill leaves the old or the new one.
func writeState(path string, data []byte) error { return atomicfile.Write(path, data) }
