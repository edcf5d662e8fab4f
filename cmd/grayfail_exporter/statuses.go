package main

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"grayfail/event"
)

// statuses keeps what each collector last said of itself.
type statuses struct {
	mu  sync.Mutex
	all map[string]event.Status
	// loadProblems are what tcp_events could not load at the start.
	loadProblems []event.Problem
	// noClock: without a send hook no exchange is seen and no leg is named,
	// whatever else still runs.
	noClock bool
}

func newStatuses(collectors ...string) *statuses {
	s := &statuses{all: map[string]event.Status{}}
	for _, name := range collectors {
		s.all[name] = event.Status{Collector: name}
	}
	return s
}

// tried records the end of one try. A failed try is counted and shown as a
// problem beside those that were found.
func (s *statuses) tried(collector string, took time.Duration, lost uint64, problems []event.Problem, failed *event.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	problems = oneForEachReason(problems)
	st := s.all[collector]
	st.Collector = collector
	st.Duration, st.Lost, st.Problems = took, lost, problems
	switch {
	case failed != nil && failed.Reason == "not_supported":
		st.Problems = append(slices.Clone(problems), *failed)
		st.Availability = event.Unsupported // nothing went wrong
	case failed != nil:
		st.Errors++
		st.Problems = append(slices.Clone(problems), *failed)
		st.Availability = event.Failed
	case len(problems) > 0:
		st.Availability = event.Degraded
	default:
		st.Availability = event.Up
	}
	s.all[collector] = st
}

// oneForEachReason joins the details of problems that share a reason: the
// reason is a label, and two series of one label set would hide each other.
func oneForEachReason(problems []event.Problem) []event.Problem {
	var out []event.Problem
	for _, p := range problems {
		at := slices.IndexFunc(out, func(q event.Problem) bool { return q.Reason == p.Reason })
		if at < 0 {
			out = append(out, p)
		} else if !strings.Contains(out[at].Detail, p.Detail) {
			out[at].Detail += "; " + p.Detail
		}
	}
	return out
}

// ready says that every collector was tried once.
func (s *statuses) ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.all {
		if st.Availability == event.NotTried {
			return false
		}
	}
	return true
}

// list returns the states by name, with their problems copied.
func (s *statuses) list() []event.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []event.Status
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		st := s.all[name]
		st.Problems = slices.Clone(st.Problems)
		out = append(out, st)
	}
	return out
}

// eventsTried records one drain of the kernel's events beside the problems
// found when the programs were loaded.
func (s *statuses) eventsTried(took time.Duration, lost uint64, err error) {
	s.mu.Lock()
	loaded := s.loadProblems
	s.mu.Unlock()
	s.tried("tcp_events", took, lost, loaded, asProblem(err))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noClock {
		st := s.all["tcp_events"]
		st.Availability = event.Failed
		s.all["tcp_events"] = st
	}
}

// asProblem turns a collector's error into the reason an operator reads.
func asProblem(err error) *event.Problem {
	if err == nil {
		return nil
	}
	reason := "failed"
	switch {
	case errors.Is(err, os.ErrPermission):
		reason = "no_permission"
	case errors.Is(err, errors.ErrUnsupported):
		reason = "not_supported"
	case errors.Is(err, os.ErrDeadlineExceeded):
		reason = "timeout"
	}
	return &event.Problem{Reason: reason, Detail: err.Error()}
}

// loaded records what the BPF programs could not do when they were loaded.
func (s *statuses) loaded(problems []event.Problem, available, clock bool) {
	s.mu.Lock()
	s.loadProblems = problems
	s.noClock = !clock
	s.mu.Unlock()
	if available {
		return // the first drain says the rest
	}
	failed := event.Problem{Reason: "failed", Detail: "no program could be loaded"}
	if len(problems) > 0 {
		failed, problems = problems[0], problems[1:]
	}
	s.tried("tcp_events", 0, 0, problems, &failed)
}
