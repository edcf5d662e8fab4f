package llamalog

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"grayfail/event"
)

// Status is what the follower says of itself: Failed while the log cannot be
// read, Degraded with a problem that leaves it reading.
//
// Reasons: no_such_file, no_permission, failed; no_inotify, bad_state,
// state_not_saved; not_per_request and journald_blob, about what the log holds.
func (f *Follower) Status() event.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.status
	s.Problems = slices.Clone(s.Problems)
	for _, reason := range slices.Sorted(maps.Keys(f.asides)) {
		s.Problems = append(s.Problems, f.asides[reason])
	}
	s.Problems = append(s.Problems, contents(f.config.Path, f.stats)...)
	if s.Availability == event.Up && len(s.Problems) > 0 {
		s.Availability = event.Degraded
	}
	return s
}

// Stats returns the parser's counters.
func (f *Follower) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Ignored = maps.Clone(s.Ignored)
	return s
}

// InFlight counts the requests that slots work on, by model.
func (f *Follower) InFlight() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.flying)
}

// report notes how a turn went.
func (f *Follower) report(err error, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Duration = took
	f.status.Problems, f.status.Availability = nil, event.Up
	if err != nil {
		f.status.Errors++
		f.status.Availability = event.Failed
		f.status.Problems = []event.Problem{{Reason: reasonOf(err), Detail: fmt.Sprintf("log %s: %v", f.config.Name, err)}}
	}
	if f.parser != nil {
		f.stats = f.parser.Stats()
		f.flying = f.parser.inFlight()
	}
}

// aside notes a problem that leaves the log readable; nil takes it back.
func (f *Follower) aside(reason string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.asides, reason)
		return
	}
	f.asides[reason] = event.Problem{Reason: reason, Detail: fmt.Sprintf("log %s: %v", f.config.Name, err)}
}

func reasonOf(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no_such_file"
	case errors.Is(err, fs.ErrPermission):
		return "no_permission"
	}
	return "failed"
}

// contents says what is wrong with what a log holds.
func contents(path string, s Stats) (problems []event.Problem) {
	if s.Requests == 0 && s.Ignored[IgnoredVLLM]+s.Ignored[IgnoredSGLang] > 0 {
		problems = append(problems, event.Problem{Reason: "not_per_request",
			Detail: path + ": this engine logs averages, nothing about one request: use a proxy or OTLP traces"})
	}
	if s.Ignored[IgnoredBlob] > 0 {
		problems = append(problems, event.Problem{Reason: "journald_blob",
			Detail: path + ": lines were replaced by [blob data]: use journalctl --all, or --log-colors off"})
	}
	return problems
}

// inFlight counts running tasks by model.
func (p *Parser) inFlight() map[string]int {
	flying := map[string]int{}
	for _, s := range p.streams {
		for _, t := range s.Slots {
			if t.LaunchNS != 0 && t.EndNS == 0 {
				flying[p.model(s)]++
			}
		}
	}
	return flying
}
