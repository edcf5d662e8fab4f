package engine

import "sync"

// maxRequest is how much of a request's body is looked at: "model" may stand
// behind a long prompt, but not behind pictures.
const maxRequest = 8 << 20

// asked is the shape of a request's body, of every engine.
var asked = []field{
	{"model", func(d *document, v value) { d.setModel(v) }, true},
	{"n", func(d *document, v value) { d.asks.n.set(v) }, false},
	// A list of strings or lists is a list of prompts; one with token numbers
	// in it is one prompt.
	{"prompt[]", func(d *document, v value) {
		d.asks.prompts++
		d.asks.numbers = d.asks.numbers || v.kind == kindNumber
	}, false},
}

var askedTree = plant(asked)

// request reads what a call asks for. The body is sent by one goroutine while
// another reads the answer, so it has a lock.
type request struct {
	mu   sync.Mutex
	scan *scanner
	seen int
	doc  document
}

func newRequest() *request {
	r := &request{}
	r.scan = newScanner(askedTree,
		func(n *node, v value) { n.mean(&r.doc, v) },
		func() {})
	return r
}

// feed reads the next bytes of the body.
func (r *request) feed(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen >= maxRequest {
		return
	}
	r.seen += len(p)
	r.scan.feed(p)
}

// model asked for; "" when not known (yet).
func (r *request) model() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doc.model
}

// choices asked for, as far as known.
func (r *request) choices() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	prompts := 1
	if !r.doc.asks.numbers {
		prompts = min(max(1, r.doc.asks.prompts), maxChoices)
	}
	return min(prompts*max(1, min(r.doc.asks.n.n, maxChoices)), maxChoices)
}
