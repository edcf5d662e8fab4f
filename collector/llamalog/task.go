package llamalog

import (
	"bytes"
	"strconv"

	"grayfail/event"
)

// A task is one request in a slot, from the line that launches it to those
// that release it and tell its times. Builds differ in which of the last two
// comes first.
type task struct {
	ID int64 `json:"id"`
	// LaunchNS is 0 when the task was not seen to begin.
	LaunchNS int64 `json:"launch_ns,omitempty"`
	// FlightNS and Area are the flight's, then.
	FlightNS int64  `json:"flight_ns,omitempty"`
	Area     uint64 `json:"area,omitempty"`
	Child    bool   `json:"child,omitempty"`
	Canceled bool   `json:"canceled,omitempty"`
	Failed   bool   `json:"failed,omitempty"`
	SoFar    int    `json:"so_far,omitempty"` // tokens, told while it runs

	// Prompt and Generated are nil until their lines come.
	Prompt    *count `json:"prompt,omitempty"`
	Generated *count `json:"generated,omitempty"`
	Total     bool   `json:"total,omitempty"`

	// EndNS is when the first line about its end was written: 0 while it runs.
	EndNS       int64   `json:"end_ns,omitempty"`
	Concurrency float64 `json:"concurrency,omitempty"`
	Released    bool    `json:"released,omitempty"`
	// Context is how many tokens the slot holds at the end; Truncated that
	// some were dropped on the way.
	Context   int  `json:"context,omitempty"`
	Truncated bool `json:"truncated,omitempty"`
}

// A count is tokens and the time they took.
type count struct {
	N  int     `json:"n"`
	MS float64 `json:"ms"`
}

func (t *task) has(kind timingKind) bool {
	switch kind {
	case timingPrompt:
		return t.Prompt != nil
	case timingGenerated:
		return t.Generated != nil
	}
	return t.Total
}

// task returns what a slot works on, as a line about that task sees it; nil
// beyond the bounds.
func (p *Parser) task(s *stream, slot, id int64, at moment) *task {
	if t := s.Slots[slot]; t != nil {
		if t.ID == id {
			return t
		}
		p.finish(s, slot, t, at) // the slot has gone on
	}
	if len(s.Slots) >= maxSlots {
		p.ignore(IgnoredManyTasks)
		return nil
	}
	t := &task{ID: id}
	s.Slots[slot] = t
	return t
}

// find returns the task whose id begins text.
func (s *stream) find(text []byte) *task {
	if id, _, ok := integer(text); ok {
		for _, t := range s.Slots {
			if t.ID == id {
				return t
			}
		}
	}
	return nil
}

func (p *Parser) launched(s *stream, slot, id int64, child bool, at moment) {
	t := p.task(s, slot, id, at)
	if t == nil || t.LaunchNS != 0 {
		return
	}
	t.LaunchNS, t.Child = max(1, at.atNS), child
	t.FlightNS, t.Area = at.flightNS, p.flight.enter(at.flightNS)
}

// timed takes a line of the task's times.
func (p *Parser) timed(s *stream, slot int64, t *task, timing timing, at moment) {
	if timing.broken {
		p.ignore(IgnoredBroken)
	}
	p.ended(t, at)
	switch c := (count{timing.n, timing.ms}); timing.kind {
	case timingPrompt:
		t.Prompt = &c
	case timingGenerated:
		t.Generated = &c
	case timingTotal:
		t.Total = true
		s.close(slot)
	}
	if t.Total && t.Released {
		p.finish(s, slot, t, at)
	}
}

// released takes "stop processing: n_tokens = 67, truncated = 0" (n_past in
// 2024).
func (p *Parser) released(s *stream, slot, id int64, text []byte, at moment) {
	t := p.task(s, slot, id, at)
	if t == nil {
		return
	}
	p.ended(t, at)
	t.Released = true
	for _, name := range []string{"n_tokens = ", "n_past = "} {
		if _, rest, ok := bytes.Cut(text, []byte(name)); ok {
			if n, _, ok := integer(rest); ok && n >= 0 && n <= maxTokens {
				t.Context = int(n)
			}
		}
	}
	t.Truncated = bytes.HasSuffix(text, []byte("truncated = 1"))
	if t.Total || t.Failed || t.Canceled {
		p.finish(s, slot, t, at)
	}
}

// ended notes the first sign of a task's end.
func (p *Parser) ended(t *task, at moment) {
	if t.EndNS != 0 {
		return
	}
	t.EndNS = max(1, at.atNS)
	if t.LaunchNS != 0 {
		c := p.flight.leave(t.FlightNS, t.Area, at.flightNS)
		if p.countFromNS != 0 && t.LaunchNS >= p.countFromNS {
			t.Concurrency = c
		}
	}
}

// close takes slot off the list of blocks whose numbers are to come.
func (s *stream) close(slot int64) {
	for i, open := range s.Open {
		if open == slot {
			s.Open = append(s.Open[:i], s.Open[i+1:]...)
			return
		}
	}
}

// finish takes a task out of its slot and tells what became of it.
func (p *Parser) finish(s *stream, slot int64, t *task, at moment) {
	p.ended(t, at)
	s.close(slot)
	delete(s.Slots, slot)
	outcome := event.OutcomeOK
	switch {
	case t.Child:
		p.ignore(IgnoredChild)
		return
	case t.Failed:
		outcome = event.OutcomeError
	case t.Prompt != nil && t.Generated != nil:
	case t.Canceled:
		outcome = event.OutcomeCanceled
	default:
		p.ignore(IgnoredNoTiming)
		return
	}
	r := event.Request{
		ID:     s.id("task", t.ID, t.EndNS/1e6),
		Source: p.config.Name, Model: p.model(s), StartNS: t.LaunchNS, EndNS: t.EndNS,
		GeneratedTokens: t.SoFar, Outcome: outcome, Concurrency: t.Concurrency,
	}
	if t.Prompt != nil && t.Generated != nil {
		t.measure(&r)
	}
	s.Run.Counted = true
	p.emit(r)
}

// measure fills in tokens, rates and times.
func (t *task) measure(r *event.Request) {
	measure(r, *t.Prompt, *t.Generated)
	// The prompt's count leaves out what was cached. At the end the slot holds
	// the prompt and all that was generated but the last token.
	if whole := t.Context - t.Generated.N + 1; !t.Truncated && whole > t.Prompt.N {
		r.PromptTokens, r.CachedTokens = whole, whole-t.Prompt.N
	}
}

// measure fills in what two counts say: the request ended at r.EndNS, its
// first token came when the prompt was done.
func measure(r *event.Request, prompt, generated count) {
	r.PromptTokens, r.GeneratedTokens = prompt.N, generated.N
	r.PrefillRate = rate(prompt.N, prompt.MS)
	if generated.N > 1 {
		r.DecodeRate = rate(generated.N, generated.MS)
	}
	if generated.N > 0 {
		r.FirstTokenNS = max(1, r.EndNS-int64(generated.MS*1e6))
	}
	start := max(1, r.EndNS-int64((prompt.MS+generated.MS)*1e6))
	if r.StartNS == 0 || r.StartNS > start {
		r.StartNS = start
	}
}

// id makes an id that no other request of this log has: an engine counts its
// tasks anew at each start.
func (s *stream) id(what string, n, end int64) string {
	id := what + "-" + strconv.FormatInt(n, 10) + "-" + strconv.FormatInt(end, 36)
	if s.origin != "" {
		id = s.origin + "-" + id
	}
	return id
}

func (p *Parser) emit(r event.Request) {
	p.stats.Requests++
	p.out = append(p.out, r)
}
