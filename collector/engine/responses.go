package engine

import "strings"

// responses is the shape of /v1/responses (OpenAI; llama.cpp and vLLM speak it
// too). A stream ends with an event of its own; no [DONE] follows. llama.cpp
// adds its timings to that event (b11669).
var responses = []field{
	{"type", func(d *document, v value) {
		switch kind := string(v.text); kind {
		case "response.completed", "response.incomplete":
			d.known, d.over = true, true
		case "response.failed", "error":
			d.known, d.failed = true, true
		default:
			d.known = d.known || strings.HasPrefix(kind, "response.")
		}
		messageType(d, v)
	}, true},
	{"delta", said, false},
	{"status", func(d *document, v value) { d.failed = d.failed || string(v.text) == "failed" }, true},
	{"response.id", func(d *document, v value) { d.setID(v) }, true},
	{"response.model", func(d *document, v value) { d.setModel(v) }, true},
	{"response.usage.input_tokens", func(d *document, v value) { d.usage.prompt.set(v) }, false},
	{"response.usage.input_tokens_details.cached_tokens", func(d *document, v value) { d.usage.cached.set(v) }, false},
	{"response.usage.output_tokens", func(d *document, v value) { d.usage.completion.set(v) }, false},
	{"usage.input_tokens", func(d *document, v value) { d.usage.prompt.set(v) }, false},
	{"usage.input_tokens_details.cached_tokens", func(d *document, v value) { d.usage.cached.set(v) }, false},
	{"usage.output_tokens", func(d *document, v value) { d.usage.completion.set(v) }, false},
}
