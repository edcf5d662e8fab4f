package engine

// openAI is the shape of /v1/chat/completions and /v1/completions, streamed
// (choices[].delta, choices[].text) and not (choices[].message). Servers that
// speak it: llama.cpp, vLLM, SGLang, TGI, Ollama, exo. A role alone, a usage
// chunk ("choices":[]) and progress are no tokens; reasoning and tool calls
// are.
var openAI = []field{
	{"id", func(d *document, v value) { d.setID(v) }, true},
	{"model", func(d *document, v value) { d.setModel(v) }, true},
	{"system_fingerprint", func(d *document, v value) { d.setFingerprint(v) }, true},
	{"error", func(d *document, v value) { d.setError(v) }, false},

	{"choices", known, false},
	{"choices[].index", func(d *document, v value) { d.setIndex(v) }, false},
	{"choices[].finish_reason", func(d *document, v value) {
		d.finished = d.finished || v.filled
		// vLLM and routers end a failed choice with "error", HTTP 200 kept.
		d.failed = d.failed || string(v.text) == "error"
	}, true},
	{"choices[].text", said, false},
	{"choices[].delta.content", said, false},
	{"choices[].delta.content[]", token, false}, // parts: text, thinking
	{"choices[].delta.reasoning_content", said, false},
	{"choices[].delta.reasoning", said, false},
	{"choices[].delta.refusal", said, false},
	{"choices[].delta.tool_calls[]", token, false},
	{"choices[].delta.function_call", token, false},

	{"usage.prompt_tokens", func(d *document, v value) { d.usage.prompt.set(v) }, false},
	{"usage.completion_tokens", func(d *document, v value) { d.usage.completion.set(v) }, false},
	{"usage.prompt_tokens_details.cached_tokens", func(d *document, v value) { d.usage.cached.set(v) }, false},
}

// known marks a document as one of a shape we can judge.
func known(d *document, _ value) { d.known = true }

// said marks a document that carries generated text: a string that is not
// empty.
func said(d *document, v value) {
	d.token = d.token || v.kind == kindString && v.filled
}

// token is said for what may also be an object.
func token(d *document, v value) {
	said(d, v)
	d.token = d.token || v.kind == kindObject
}
