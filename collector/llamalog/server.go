package llamalog

import "bytes"

// A stream is one engine that writes to the log.
type stream struct {
	origin string
	now    moment // of this line
	before moment // of the line before

	// Model is the name of the file it loaded, Named what a router calls it.
	Model string `json:"model,omitempty"`
	Named string `json:"named,omitempty"`
	// Server: it has shown itself to be llama-server.
	Server bool `json:"server,omitempty"`
	// StartNS is when the engine started, as its lines tell that come as they
	// are written, and SinceStartNS how long after that the last one was.
	StartNS      int64 `json:"start_ns,omitempty"`
	SinceStartNS int64 `json:"since_start_ns,omitempty"`
	// BaseNS is that start on the flight's clock.
	BaseNS int64 `json:"base_ns,omitempty"`
	// Slots holds the task that each slot works on.
	Slots map[int64]*task `json:"slots,omitempty"`
	// Open are the slots whose timing has begun and whose numbers come on
	// lines that say neither slot nor task, oldest first.
	Open []int64 `json:"open,omitempty"`

	Run cliRun `json:"run"`
}

// server understands a line of llama-server:
//
//	slot launch_slot_: id  0 | task 33 | processing task, is_child = 0
//	slot print_timing: id  0 | task 33 | prompt eval time = ...
//	slot      release: id  0 | task 33 | stop processing: n_tokens = 67, truncated = 0
//	srv          stop: cancel task, id_task = 183
//	srv    send_error: task id = 249, error: ...
func (p *Parser) server(s *stream, line said) bool {
	if rest, ok := bytes.CutPrefix(line.text, []byte("slot ")); ok {
		return p.slotLine(s, rest, line.moment)
	}
	if rest, ok := bytes.CutPrefix(line.text, []byte("srv ")); ok {
		return p.serverLine(s, rest, line.moment)
	}
	if t := parseTiming(line.text); t.kind != timingNone {
		p.continued(s, t, line.moment)
		return true
	}
	return false
}

// slotLine reads "FUNC: id  0 | task 33 | WORDS". The words decide: functions
// have changed their names.
func (p *Parser) slotLine(s *stream, text []byte, at moment) bool {
	function, rest, ok := bytes.Cut(text, []byte(": id "))
	if !ok {
		return false
	}
	slot, rest, ok := integer(rest)
	if !ok {
		return false
	}
	rest, ok = bytes.CutPrefix(rest, []byte(" | task "))
	if !ok {
		return false
	}
	id, rest, ok := integer(rest)
	if !ok || id < 0 {
		return ok // -1: about the slot itself
	}
	rest, ok = bytes.CutPrefix(rest, []byte(" |"))
	if !ok {
		return false
	}
	s.Server = true
	text = bytes.TrimLeft(rest, " ")
	switch {
	case bytes.HasPrefix(text, []byte("processing task")):
		p.launched(s, slot, id, bytes.HasSuffix(text, []byte("is_child = 1")), at)
	case bytes.HasPrefix(text, []byte("stop processing:")):
		p.released(s, slot, id, text, at)
	case bytes.HasPrefix(text, []byte("n_gen =")), bytes.HasPrefix(text, []byte("n_decoded =")):
		if t := p.task(s, slot, id, at); t != nil {
			_, count, _ := bytes.Cut(text, []byte("="))
			if n, _, ok := integer(count); ok && n >= 0 && n <= maxTokens {
				t.SoFar = int(n)
			}
		}
	case len(text) == 0 && bytes.HasSuffix(function, []byte("print_timing")):
		if t := p.task(s, slot, id, at); t != nil && len(s.Open) < maxSlots {
			s.Open = append(s.Open, slot)
		}
	default:
		timing := parseTiming(text)
		if timing.kind == timingNone {
			break
		}
		if t := p.task(s, slot, id, at); t != nil {
			p.timed(s, slot, t, timing, at)
		}
	}
	return true
}

// serverLine reads "FUNC: WORDS".
func (p *Parser) serverLine(s *stream, text []byte, at moment) bool {
	_, text, ok := bytes.Cut(text, []byte(": "))
	if !ok {
		return false
	}
	s.Server = true
	after := func(marker string) (rest []byte, ok bool) { return bytes.CutPrefix(text, []byte(marker)) }
	if rest, ok := after("cancel task, id_task = "); ok {
		if t := s.find(rest); t != nil {
			t.Canceled = true
		}
	} else if rest, ok := after("task id = "); ok && bytes.Contains(rest, []byte(", error: ")) {
		if t := s.find(rest); t != nil {
			t.Failed = true
			p.ended(t, at)
		}
	} else if _, ok := after("all slots are idle"); ok {
		if s.origin == "" && p.countFromNS == 0 {
			p.countFromNS = max(1, at.atNS) // nothing is in flight unseen
		}
	} else if rest, ok := after("loading model '"); ok {
		p.restarted(s)
		s.Model = modelOfPath(rest)
	} else if rest, ok := after("spawning server instance with name="); ok {
		p.child(s, rest, " on port ", at)
	} else if rest, ok := after("proxying request to model "); ok {
		p.child(s, rest, " on port ", at)
	} else if bytes.HasSuffix(text, []byte("cleaning up before exit...")) {
		p.stopped(s, at)
	}
	return true
}

// child learns a model's name from a router: "NAME on port PORT".
func (p *Parser) child(router *stream, text []byte, separator string, at moment) {
	cut := bytes.LastIndex(text, []byte(separator))
	if cut < 0 {
		return
	}
	port, rest, ok := integer(text[cut+len(separator):])
	if !ok || len(rest) > 0 || port <= 0 || port > 65535 {
		return
	}
	if s := p.stream(router.origin+string(text[cut+len(separator):]), at.atNS); s != nil {
		s.Named = cleanModel(text[:cut])
	}
}

// continued reads a timing line that says neither slot nor task: it belongs to
// the oldest block that has no such line yet.
func (p *Parser) continued(s *stream, timing timing, at moment) {
	for _, slot := range s.Open {
		t := s.Slots[slot]
		if t == nil || t.has(timing.kind) {
			continue
		}
		p.timed(s, slot, t, timing, at)
		return
	}
	p.ignore(IgnoredOrphan)
}
