package engine

// llamaCPP is the native shape of llama-server's /completion and /infill, and
// the timings that it adds to every answer. The last native chunk has
// "stop":true; no [DONE] follows. Progress chunks (return_progress) look like
// tokens but have no content ("tokens":[0], tokens_predicted 0; seen in
// b11669).
var llamaCPP = []field{
	{"index", func(d *document, v value) { d.place.set(v) }, false},
	{"content", said, false},
	{"stop", func(d *document, v value) {
		d.placed = true
		d.known = d.known || v.kind == kindBool
		d.finished = d.finished || v.truth
	}, false},
	{"tokens_predicted", func(d *document, v value) { d.usage.completion.set(v) }, false},
	{"tokens_evaluated", func(d *document, v value) { d.usage.prompt.set(v) }, false},

	{"timings", func(d *document, v value) { d.timings.seen = v.kind == kindObject }, false},
	{"timings.cache_n", func(d *document, v value) { d.timings.cached.set(v) }, false},
	{"timings.prompt_n", func(d *document, v value) { d.timings.prompt.set(v) }, false},
	{"timings.prompt_ms", func(d *document, v value) { d.timings.promptMS, _ = v.milliseconds() }, false},
	{"timings.predicted_n", func(d *document, v value) { d.timings.predicted.set(v) }, false},
	{"timings.predicted_ms", func(d *document, v value) { d.timings.predictedMS, _ = v.milliseconds() }, false},
}
