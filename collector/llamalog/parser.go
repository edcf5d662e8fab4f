package llamalog

import (
	"bytes"
	"maps"

	"grayfail/event"
)

// Config names what a parser's requests are of.
type Config struct {
	// Name is the requests' Source.
	Name string
	// Model is the requests' model; "" takes the name of the file that the
	// engine says it loads, or the one a router gives, else "unknown". Leave it
	// empty for a router: each of its models has a speed of its own.
	Model string
}

const (
	maxRaw     = 256 << 10 // Docker escapes 16 KiB to at most 96
	maxText    = 1 << 10   // the longest line that matters has some 150 bytes
	maxStreams = 64        // engines in one log
	maxSlots   = 256       // of one engine
)

// Why something in a log became no request.
const (
	IgnoredVLLM      = "vllm_engine_average"  // averages of the whole engine
	IgnoredSGLang    = "sglang_batch_average" // averages of a batch
	IgnoredBlob      = "journald_blob"        // "[48B blob data]": journalctl needs --all
	IgnoredTooLong   = "line_too_long"
	IgnoredBroken    = "timing_unreadable"
	IgnoredOrphan    = "timing_without_task" // a continuation line whose beginning was not seen
	IgnoredNoTiming  = "task_without_timing" // embeddings, reranking, a slot's save
	IgnoredChild     = "child_of_task"       // further choices (n > 1) of one request
	IgnoredStopped   = "engine_stopped"      // in flight when the engine was told to stop
	IgnoredSummary   = "summary_of_run"      // llama-cli's sum of turns already counted
	IgnoredRepeated  = "error_repeated"      // a second line about one failed run
	IgnoredManyTasks = "too_many_slots"      // beyond the bounds on streams and slots
)

// Stats counts since the parser was made.
type Stats struct {
	Lines    uint64
	Requests uint64
	Ignored  map[string]uint64 // by the reasons above
}

// A Parser reads one log. It is not safe for concurrent use.
type Parser struct {
	config  Config
	raw     lineBuffer
	inner   map[string]*lineBuffer // by the stream inside envelopes
	journal journal
	streams map[string]*stream
	flight  flight
	// countFromNS: how many tasks are in flight is known for those that began
	// after it; 0 when not known yet.
	countFromNS int64
	beganNS     int64
	// old: bytes were written some time before they came.
	old   bool
	out   []event.Request
	stats Stats
}

// NewParser makes a parser. whole says that it will read the log from its
// beginning, so that no task is in flight unseen.
func NewParser(config Config, whole bool) *Parser {
	p := &Parser{
		config: config, raw: lineBuffer{max: maxRaw}, inner: map[string]*lineBuffer{},
		streams: map[string]*stream{}, stats: Stats{Ignored: map[string]uint64{}},
	}
	if whole {
		p.countFromNS = 1
	}
	return p
}

// Feed reads the next bytes, which came at atNS (Unix nanoseconds), and
// returns the requests that ended in them. The slice is valid until the next
// call.
func (p *Parser) Feed(b []byte, atNS int64) []event.Request {
	p.out = p.out[:0]
	p.old = false
	p.feed(b, atNS)
	return p.out
}

// FeedOld is Feed for bytes that were written some time before atNS: where the
// engine's lines say how long after its start they were written, and its start
// is known, that is their time.
func (p *Parser) FeedOld(b []byte, atNS int64) []event.Request {
	p.out = p.out[:0]
	p.old = true
	p.feed(b, atNS)
	return p.out
}

func (p *Parser) feed(b []byte, atNS int64) {
	if p.beganNS == 0 {
		p.beganNS = atNS
	}
	for len(b) > 0 {
		if p.journal.binary {
			rest, message, done := p.journal.bytes(b)
			if done && message != nil {
				p.inside(message, p.journalPrefix(), atNS, atNS, atNS)
			}
			b = rest
			continue
		}
		line, rest, ok := p.raw.next(b, atNS)
		if ok {
			p.line(line, atNS)
		}
		b = rest
	}
}

func (p *Parser) journalPrefix() prefix {
	return prefix{wallNS: p.journal.wallNS, sinceStartNS: -1}
}

// line takes one line of the log and finds the engine's words in it.
func (p *Parser) line(line rawLine, atNS int64) {
	p.stats.Lines++
	if line.cut {
		p.ignore(IgnoredTooLong)
		return
	}
	if message, taken := p.journal.line(line.text); taken {
		if message != nil {
			p.inside(message, p.journalPrefix(), line.firstNS, line.lastNS, atNS)
		}
		return
	}
	if load, ok := unwrap(line.text); ok {
		p.piece(load, atNS)
		return
	}
	before, text := trimPrefix(trimColours(line.text[:min(len(line.text), maxText)]))
	if before.partial || p.inner["cri"] != nil {
		end := "\n"
		if before.partial {
			end = ""
		}
		p.piece(payload{stream: "cri", text: append(bytes.Clone(text), end...), prefix: before}, atNS)
		return
	}
	p.words(text, before, line.firstNS, line.lastNS, atNS)
}

// piece takes what an envelope held, and goes on when a line is whole.
func (p *Parser) piece(load payload, atNS int64) {
	lines := p.inner[load.stream]
	if lines == nil {
		lines = &lineBuffer{max: maxText}
		p.inner[load.stream] = lines
	}
	for rest := load.text; len(rest) > 0; {
		line, after, ok := lines.next(rest, atNS)
		if ok {
			p.inside(line.text, load.prefix, line.firstNS, line.lastNS, atNS)
		}
		rest = after
	}
}

// inside takes one line out of an envelope, with what that said about it.
func (p *Parser) inside(text []byte, outer prefix, firstNS, lastNS, atNS int64) {
	before, text := trimPrefix(trimColours(text[:min(len(text), maxText)]))
	if outer.wallNS != 0 {
		before.wallNS = outer.wallNS
	}
	if before.sinceStartNS < 0 {
		before.sinceStartNS = outer.sinceStartNS
	}
	before.origin = outer.origin + before.origin
	p.words(text, before, firstNS, lastNS, atNS)
}

// words takes one line of an engine, and what stood before it.
func (p *Parser) words(text []byte, before prefix, firstNS, lastNS, atNS int64) {
	s := p.stream(before.origin, atNS)
	if s == nil {
		p.ignore(IgnoredManyTasks)
		return
	}
	at := p.moment(s, before, atNS)
	s.before, s.now = s.now, at
	w := said{text: text, moment: at, firstNS: firstNS, lastNS: lastNS}
	switch {
	case p.server(s, w), p.cli(s, w), p.died(s, w):
	default:
		p.other(text)
	}
}

// said is a line of an engine without anything before it, and its times.
type said struct {
	text []byte
	moment
	// firstNS and lastNS are when its first and last byte came.
	firstNS, lastNS int64
}

// moment is when a line was written: what the line says, if it says so in
// wall-clock time, else when it came.
func (p *Parser) moment(s *stream, before prefix, atNS int64) moment {
	m := moment{atNS, atNS}
	if since := before.sinceStartNS; since >= 0 {
		// A new engine begins near zero; two that share a log do not.
		if since < s.SinceStartNS && since < 10e9 {
			s.before, s.StartNS, s.BaseNS = s.now, 0, 0
			p.restarted(s)
		}
		if s.BaseNS == 0 {
			s.BaseNS = max(1, atNS-since)
		}
		s.SinceStartNS, m.flightNS = since, s.BaseNS+since
		if !p.old {
			s.StartNS = atNS - since
		} else if s.StartNS > 0 {
			m.atNS = min(m.atNS, s.StartNS+since)
		}
	} else if s.BaseNS != 0 {
		m.flightNS = s.now.flightNS // a line without time among those with one
	}
	const ahead = 1e9 // clocks of one host agree; beyond this it is another's
	if wall := before.wallNS; wall > 0 && wall <= atNS+ahead {
		m.atNS = min(wall, atNS)
		m.flightNS = m.atNS
	}
	return m
}

// stream returns the engine that writes under origin; nil when there are too
// many. One that does nothing makes room for a new one.
func (p *Parser) stream(origin string, atNS int64) *stream {
	if s := p.streams[origin]; s != nil {
		return s
	}
	if len(p.streams) >= maxStreams {
		oldest := ""
		for name, s := range p.streams {
			if len(s.Slots) == 0 && (oldest == "" || s.now.atNS < p.streams[oldest].now.atNS) {
				oldest = name
			}
		}
		if oldest == "" {
			return nil
		}
		delete(p.streams, oldest)
	}
	s := &stream{origin: origin, Slots: map[int64]*task{}, now: moment{atNS, atNS}}
	p.streams[origin] = s
	return s
}

// other knows lines that look as if they held requests and do not.
func (p *Parser) other(text []byte) {
	has := func(s string) bool { return bytes.Contains(text, []byte(s)) }
	switch {
	case has("Avg generation throughput:") && has("tokens/s"):
		p.ignore(IgnoredVLLM)
	case has("Decode batch") && has("gen throughput (token/s)"), has("Prefill batch") && has("#new-token"):
		p.ignore(IgnoredSGLang)
	case bytes.HasPrefix(text, []byte("[")) && bytes.HasSuffix(text, []byte("B blob data]")):
		p.ignore(IgnoredBlob)
	}
}

func (p *Parser) ignore(reason string) { p.stats.Ignored[reason]++ }

// Stats returns the counters; the map is the caller's.
func (p *Parser) Stats() Stats {
	s := p.stats
	s.Ignored = maps.Clone(s.Ignored)
	return s
}
