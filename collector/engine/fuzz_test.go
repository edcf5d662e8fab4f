package engine

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"testing"
	"unicode/utf8"

	"grayfail/event"
)

// FuzzObserver: no answer crashes it, splits of it do not matter, and what
// comes out can be exported.
func FuzzObserver(f *testing.F) {
	for _, name := range names(f, fixtures) {
		ex := load(f, fixtures, name)
		f.Add(ex.asked, ex.body(), ex.header.Get("Content-Type"), len(ex.asked)/2)
	}
	for _, a := range conformance(f) {
		f.Add(a.Asked, bytes.Join(a.Pieces, nil), a.Header.Get("Content-Type"), 1)
	}
	f.Add([]byte(`{"n":1e99,"prompt":[[[`), []byte(role+chunk+usage4+done), events, 7)
	f.Add([]byte(`{`), []byte("data:\r\rdata\n:\n\xef\xbb\xbfdata: {\"a\":[\"\\u12\xff"), "", 3)
	f.Fuzz(func(t *testing.T, asked, body []byte, contentType string, split int) {
		run := func(pieces ...[]byte) event.Request {
			o := NewObserver(Call{ID: "ours", StartNS: startNS})
			o.RequestBody(asked)
			o.Response(200, http.Header{"Content-Type": {contentType}})
			for _, p := range pieces {
				o.ResponseBody(p, startNS+1)
			}
			if n := o.Choices(); n < 1 || n > maxChoices {
				t.Fatalf("%d choices", n)
			}
			return o.Finish(EndedClean, startNS+2)
		}
		r := run(body)
		if split >= 0 && split < len(body) {
			if got := run(body[:split], body[split:]); got != r {
				t.Fatalf("split at %d: %+v, whole: %+v", split, got, r)
			}
		}
		if r.FirstTokenNS != 0 && (r.FirstTokenNS < r.StartNS || r.FirstTokenNS > r.EndNS) {
			t.Errorf("first token outside the call: %+v", r)
		}
		for _, rate := range []float64{r.PrefillRate, r.DecodeRate} {
			if math.IsNaN(rate) || rate < 0 || rate > maxRate {
				t.Errorf("rate %g", rate)
			}
		}
		if min(r.PromptTokens, r.CachedTokens, r.GeneratedTokens) < 0 || r.CachedTokens > r.PromptTokens {
			t.Errorf("counts: %+v", r)
		}
		if r.ID == "" || len(r.ID) > MaxID || r.Model == "" || len(r.Model) > MaxModel || !utf8.ValidString(r.ID+r.Model) {
			t.Errorf("names %q %q", r.ID, r.Model)
		}
	})
}

// FuzzScanner: what encoding/json takes, the scanner takes whole; what it
// calls complete, encoding/json takes (the grammar of numbers and the text of
// strings aside).
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{
		`{"timings":{"prompt_n":1.5e2,"x":[1,2,{"y":null}]},"a":true}`, `[{}, {"id":"\u00e9\n"}]`, `{"a":}`, `[1,]`, `{"a" 1}`,
		`{"usage":{"prompt_tokens":-0.0}}`, ` { } `, `[[[]]]`, `{"choices":[{"delta":{"content":"\"}"}}]}`, `truefalse`, `{"a":tru}`, "\"\\x\"", `{1:2}`, `]`, `[true}`, `{"a":[}`, `{"a":{]}`, `{"a":true,}`, `{"a":true "b"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		s := newScanner(answerTree, func(n *node, v value) { n.mean(new(document), v) }, func() {})
		s.feed(doc)
		s.feed([]byte(" ")) // ends a number
		valid := json.Valid(doc)
		complete := s.complete() && s.values == 1
		if valid && !complete && deepest(doc) < maxDepth {
			t.Fatalf("valid JSON, state %d, %d values", s.state, s.values)
		}
		if complete && !valid && !bytes.ContainsAny(doc, "-0123456789") {
			t.Fatalf("not JSON, taken as whole: %q", doc)
		}
	})
}

// deepest is at least how deep a document is nested.
func deepest(doc []byte) int { return bytes.Count(doc, []byte("[")) + bytes.Count(doc, []byte("{")) }

func FuzzClean(f *testing.F) {
	f.Add("qwen2.5-0.5b", 10)
	f.Add("\u202e\x00é\xff", 3)
	f.Fuzz(func(t *testing.T, name string, limit int) {
		limit = max(0, min(limit, 1<<10))
		clean := CleanName(name, limit)
		if len(clean) > limit || !utf8.ValidString(clean) || CleanName(clean, limit) != clean {
			t.Errorf("%q, at most %d: %q", name, limit, clean)
		}
		id := CleanID(name)
		if len(id) > MaxID || CleanID(id) != id {
			t.Errorf("%q: %q", name, id)
		}
	})
}
