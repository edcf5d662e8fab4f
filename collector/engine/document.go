package engine

import "encoding/json"

// document is what one JSON object of an answer said: a streamed chunk, or
// the whole of an answer that is not streamed.
type document struct {
	known    bool // of a shape that says when it ends
	token    bool // carries generated text
	finished bool // its choice has ended
	over     bool // the answer has ended
	failed   bool // the engine reports an error
	index    int  // of the choice
	// place is a top-level "index"; it is the choice's where the shape says
	// so (placed). TGI counts tokens with it, Anthropic's shape blocks.
	place   tokens
	placed  bool
	timings timings
	usage   usage
	asks    asks // of a request's body
	model   string
	id      string
	// fingerprint names the build and its settings.
	fingerprint string
}

// asks is how many choices a request's body wants: n for each of its prompts.
type asks struct {
	n       tokens
	prompts int  // elements of the list "prompt"
	numbers bool // the list has token numbers: it is one prompt
}

// timings as measured by the engine itself, for one choice.
type timings struct {
	seen bool
	// prompt leaves the cached tokens out.
	cached, prompt, predicted tokens
	promptMS, predictedMS     float64
	// rate is the engine's own mean of the decode rate, where it gives no
	// duration to make one of.
	rate float64
}

// usage as counted by the engine, for all choices. prompt is the whole
// prompt, cached included, unless the shape counts the parts one by one: then
// read from and written to the cache are not in it.
type usage struct{ prompt, cached, completion, read, written tokens }

// merge takes what a later document says.
func (u *usage) merge(later usage) {
	u.prompt.merge(later.prompt)
	u.cached.merge(later.cached)
	u.completion.merge(later.completion)
	u.read.merge(later.read)
	u.written.merge(later.written)
}

// tokens is a count that may be absent.
type tokens struct {
	n  int
	ok bool
}

func (t *tokens) set(v value) {
	if n, ok := v.count(); ok {
		*t = tokens{n, true}
	}
}

func (t *tokens) merge(later tokens) {
	if later.ok {
		*t = later
	}
}

func (d *document) setIndex(v value) {
	if n, ok := v.count(); ok {
		d.index = n
	}
}

// setError takes "error":{...} or "error":"...". The text may quote the
// prompt: it is not kept.
func (d *document) setError(v value) {
	if v.kind == kindObject || v.kind == kindString && v.filled {
		d.known, d.failed = true, true
	}
}

func (d *document) setModel(v value) {
	if d.model == "" && v.filled {
		d.model = CleanName(unescape(v.text), MaxModel)
	}
}

func (d *document) setID(v value) {
	if d.id == "" && v.filled {
		d.id = CleanID(unescape(v.text))
	}
}

func (d *document) setFingerprint(v value) {
	if d.fingerprint == "" && v.filled {
		d.fingerprint = CleanName(unescape(v.text), MaxModel)
	}
}

// next makes room for the next document; names stay.
func (d *document) next() { *d = document{model: d.model, id: d.id, fingerprint: d.fingerprint} }

// unescape undoes the escapes of a string that may have been cut.
func unescape(raw []byte) string {
	var s string
	quoted := append(append([]byte{'"'}, raw...), '"')
	if err := json.Unmarshal(quoted, &s); err != nil {
		return string(raw)
	}
	return s
}
