package engine

import (
	"mime"
	"net/http"
	"strings"
	"sync/atomic"

	"grayfail/event"
)

// maxChoices bounds what is told apart in one answer (n, several prompts).
const maxChoices = 64

var answerTree = plant(openAI, responses, messages, llamaCPP, vLLM, sgLang, tgi, ollama, exo("generation_stats."))

// Call is what is known before the first byte passes.
type Call struct {
	ID      string // used if the answer has none
	Source  string
	Model   string // configured; "" takes what the answer or the request says
	StartNS int64  // Unix time
}

// format of an answer's body.
type format uint8

const (
	formatOther  format = iota // nothing to read in it
	formatJSON                 // one document, or a list of them
	formatEvents               // text/event-stream
	formatLines                // a document on each line
	formatSniff                // not declared: the first byte tells
)

// Observer reads one call as it passes. RequestBody and Model may be called
// at any time from any goroutine; the other methods need one caller at a
// time.
type Observer struct {
	call     Call
	request  *request
	answered atomic.Pointer[string] // the model, as the answer says

	status int
	format format
	scan   *scanner
	events sse
	doc    document
	nowNS  int64 // time of the bytes being read

	firstByteNS int64
	// firstNS and lastNS are the first and last document with generated
	// text, deltas their number.
	firstNS, lastNS int64
	deltas          int
	// early is how many tokens the engine had counted by the first of them.
	early   tokens
	doneNS  int64 // when the answer was known to be whole
	marked  bool  // a mark that ends the whole answer has passed
	failed  bool
	known   int // documents of a shape we can judge
	all     int // documents
	broken  int // payloads that are not JSON
	begun   uint64
	ended   uint64 // choices, as bits
	perTurn [maxChoices]timings
	usage   usage
	partial bool // not every byte was seen
	blocked int64
}

// NewObserver begins to observe one call.
func NewObserver(call Call) *Observer {
	o := &Observer{call: call, request: newRequest()}
	o.scan = newScanner(answerTree,
		func(n *node, v value) { n.mean(&o.doc, v) },
		o.merge)
	o.events = sse{
		data: o.scan.feed,
		event: func() {
			if !o.scan.complete() && !o.events.done {
				o.broken++
			}
			o.scan.reset()
			o.doc.next()
		},
		failed: func() { o.failed, o.known = true, o.known+1 },
	}
	o.events.comment = exoComments(&o.perTurn[0])
	return o
}

// RequestBody takes the next bytes of the request's body. Only the model and
// the number of choices asked for are learnt, from its first 8 MiB.
func (o *Observer) RequestBody(p []byte) { o.request.feed(p) }

// Model is the best name known so far: the configured one, else what the
// answer says, else the request, else "unknown".
func (o *Observer) Model() string {
	if o.call.Model != "" {
		return o.call.Model
	}
	if answered := o.answered.Load(); answered != nil {
		return *answered
	}
	if model := o.request.model(); model != "" {
		return model
	}
	return "unknown"
}

// Response takes the answer's status and header.
func (o *Observer) Response(status int, header http.Header) {
	o.status = status
	o.usage.merge(tgiHeader(header))
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	switch {
	case err != nil:
		o.format = formatSniff
	case kind == "text/event-stream":
		o.format = formatEvents
	case kind == "application/x-ndjson":
		o.format = formatLines
	case strings.HasSuffix(kind, "json"):
		o.format = formatJSON
	case kind == "text/plain" || kind == "application/octet-stream":
		o.format = formatSniff
	}
}

// ResponseBody takes the next bytes of the answer's body, without its content
// coding, and when they came (Unix time, not before any earlier one).
func (o *Observer) ResponseBody(p []byte, atNS int64) {
	if len(p) == 0 {
		return
	}
	o.nowNS = atNS
	if o.firstByteNS == 0 {
		o.firstByteNS = atNS
	}
	if o.format == formatSniff {
		p = o.sniff(p)
	}
	switch o.format {
	case formatJSON, formatLines:
		o.scan.feed(p)
	case formatEvents:
		o.events.feed(p)
	}
	if o.doneNS == 0 && o.streams() && o.whole() {
		o.doneNS = atNS
	}
}

// streams says that documents come as they are made.
func (o *Observer) streams() bool { return o.format == formatEvents || o.format == formatLines }

// sniff decides by the first byte that is not space.
func (o *Observer) sniff(p []byte) []byte {
	for i, c := range p {
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '{', '[':
			o.format = formatJSON
		case 'd', 'e', ':':
			o.format = formatEvents
		default:
			o.format = formatOther
		}
		return p[i:]
	}
	return nil
}

// Blocked adds time (ns) in which the client did not take what had come: our
// clock cannot tell a slow client from a slow engine then.
func (o *Observer) Blocked(ns int64) { o.blocked += ns }

// Abandon says that the rest of the body will not be shown: nothing is
// concluded from what is missing.
func (o *Observer) Abandon() { o.partial = true }

// merge takes in a document that has ended.
func (o *Observer) merge() {
	d := &o.doc
	o.all++
	if d.known || d.timings.seen {
		o.known++
	}
	o.failed = o.failed || d.failed
	o.marked = o.marked || d.over
	o.usage.merge(d.usage)
	if d.placed && d.place.ok {
		d.index = d.place.n
	}
	if index := d.index; index < maxChoices {
		if d.known {
			o.begun |= 1 << index
		}
		if d.finished {
			o.ended |= 1 << index
		}
		if d.timings.seen {
			o.perTurn[index] = d.timings
		}
	}
	if d.token && o.streams() {
		o.token()
	}
	if d.model != "" && o.answered.Load() == nil {
		model := d.model
		o.answered.Store(&model)
	}
	d.next()
}

func (o *Observer) token() {
	o.deltas++
	if o.firstNS == 0 {
		o.firstNS = o.nowNS
		o.early = o.doc.usage.completion
	}
	o.lastNS = o.nowNS
}

// Finish says how the call ended and when (Unix time), and returns what it
// was. Concurrency is left to the caller: it knows the neighbours.
func (o *Observer) Finish(ending Ending, atNS int64) event.Request {
	o.events.finish()
	r := event.Request{
		ID: o.doc.id, Source: o.call.Source, Model: o.Model(),
		StartNS: o.call.StartNS, EndNS: max(atNS, o.call.StartNS),
		Outcome: o.outcome(ending), Status: o.status, Fingerprint: o.doc.fingerprint,
	}
	if r.ID == "" {
		r.ID = o.call.ID
	}
	if o.doneNS != 0 && r.Outcome == event.OutcomeOK {
		r.EndNS = o.doneNS
	}
	o.measure(&r)
	return r
}
