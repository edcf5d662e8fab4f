package engine

// ollama is the native shape of /api/generate and /api/chat: a document on
// each line, or one that is not streamed. Durations are in nanoseconds.
// prompt_eval_count is the whole prompt (runner.go: numPromptInputs) and
// prompt_eval_duration the time for the part that was not cached, which is
// not told: no prefill rate can be made of them.
var ollama = []field{
	{"response", said, false},
	{"thinking", said, false},
	{"message.content", said, false},
	{"message.thinking", said, false},
	{"message.tool_calls[]", token, false},
	{"done", func(d *document, v value) {
		d.known = d.known || v.kind == kindBool
		d.over = d.over || v.truth
	}, false},
	{"prompt_eval_count", func(d *document, v value) { d.usage.prompt.set(v) }, false},
	{"eval_count", func(d *document, v value) { d.timings.predicted.set(v); d.timings.seen = true }, false},
	{"eval_duration", func(d *document, v value) {
		if ns, ok := v.milliseconds(); ok {
			d.timings.predictedMS = ns / 1e6
		}
	}, false},
}
