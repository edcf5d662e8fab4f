package llamalog

import (
	"bytes"
	"maps"
	"slices"

	"grayfail/event"
)

// hold is how long a task's end waits for the rest of its lines: builds of
// 2024 release a slot before they print its times, later ones after.
const hold = int64(1e9)

// countAfter is how long after reading began inside a log every task in flight
// is taken to have been seen to begin.
const countAfter = int64(600e9)

// Idle says that nothing more has come up to atNS: tasks whose end was seen
// but not all of its lines end as they are.
func (p *Parser) Idle(atNS int64) []event.Request {
	p.out = p.out[:0]
	for _, s := range p.streams {
		s.each(func(slot int64, t *task) {
			if t.EndNS != 0 && atNS-t.EndNS >= hold {
				p.finish(s, slot, t, s.now)
			}
		})
	}
	if p.countFromNS == 0 && p.beganNS != 0 && atNS-p.beganNS >= countAfter {
		p.countFromNS = atNS
	}
	return p.out
}

// Close says that the log ended at atNS. Tasks still running had no end that
// can be known: the last of a pipe was read, and the engine may live on.
func (p *Parser) Close(atNS int64) []event.Request {
	p.out = p.out[:0]
	for _, name := range slices.Sorted(maps.Keys(p.streams)) {
		s := p.streams[name]
		s.each(func(slot int64, t *task) {
			if t.EndNS != 0 || t.Canceled {
				p.finish(s, slot, t, moment{atNS, s.now.flightNS})
			}
		})
		p.closeRun(s)
	}
	return p.out
}

// each visits the slots in their order; f may take tasks out.
func (s *stream) each(f func(slot int64, t *task)) {
	for _, slot := range slices.Sorted(maps.Keys(s.Slots)) {
		f(slot, s.Slots[slot])
	}
}

// stopped: the engine was told to stop. What it was working on is no failure
// of its own.
func (p *Parser) stopped(s *stream, at moment) {
	s.each(func(slot int64, t *task) {
		if t.EndNS != 0 || t.Canceled {
			p.finish(s, slot, t, at)
			return
		}
		p.ended(t, at)
		delete(s.Slots, slot)
		p.ignore(IgnoredStopped)
	})
	s.Open = nil
}

// restarted: the engine starts anew under a stream. What its predecessor was
// still working on died with it, after the last line that was written.
func (p *Parser) restarted(s *stream) {
	p.crashed(s, s.before)
	s.Open = nil
	s.Run = cliRun{Made: s.Run.Made}
}

// crashed: every task in flight has failed.
func (p *Parser) crashed(s *stream, at moment) {
	s.each(func(slot int64, t *task) {
		t.Failed = t.Failed || t.EndNS == 0
		p.finish(s, slot, t, at)
	})
}

// died understands what an engine writes as it aborts, and a llama-cli that
// cannot reach its workers:
//
//	Failed to connect to 10.77.2.2:50052
//	./src/ggml-rpc/ggml-rpc.cpp:682: Remote RPC server crashed or returned malformed response
//	/lib/x86_64-linux-gnu/libggml-base.so.0(ggml_abort+0x14e) [0x7fd3db148b2e]
//	#3  0x00007fd3db148b2e in ggml_abort () from libggml-base.so
func (p *Parser) died(s *stream, line said) bool {
	text := line.text
	if len(text) == 0 {
		return false
	}
	message := text
	if at := bytes.Index(text, []byte(".cpp:")); at >= 0 && bytes.IndexByte(text[:at], ' ') < 0 {
		if n, rest, ok := integer(text[at+len(".cpp:"):]); ok && n > 0 {
			message = bytes.TrimPrefix(rest, []byte(": "))
		}
	}
	switch {
	case bytes.HasPrefix(message, []byte("Failed to connect to ")) && hostPort(message[len("Failed to connect to "):]):
	case bytes.HasPrefix(message, []byte("Remote RPC server crashed or returned malformed response")):
	case text[0] == '/' && bytes.Contains(text, []byte("(ggml_abort+0x")):
	case text[0] == '#' && bytes.Contains(text, []byte(" in ggml_abort ")):
	default:
		return false
	}
	if s.Server {
		p.crashed(s, line.moment)
		return true
	}
	p.runFailed(s, line.atNS)
	return true
}

// hostPort: an address, and nothing behind it.
func hostPort(text []byte) bool {
	colon := bytes.LastIndexByte(text, ':')
	if colon <= 0 || bytes.IndexByte(text, ' ') >= 0 {
		return false
	}
	port, rest, ok := integer(text[colon+1:])
	return ok && len(rest) == 0 && port > 0 && port <= 65535
}
