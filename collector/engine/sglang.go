package engine

// sgLang is the native shape of SGLang's /generate. "text" is all of the
// answer so far, in each chunk again; the counts beside it are the truth. The
// stream ends with [DONE]; an answer to several prompts is a list.
var sgLang = []field{
	{"text", said, false},
	{"meta_info", func(d *document, _ value) { d.known, d.placed = true, true }, false},
	{"meta_info.id", func(d *document, v value) { d.setID(v) }, true},
	{"meta_info.prompt_tokens", func(d *document, v value) { d.usage.prompt.set(v) }, false},
	{"meta_info.completion_tokens", func(d *document, v value) { d.usage.completion.set(v) }, false},
	{"meta_info.cached_tokens", func(d *document, v value) { d.usage.cached.set(v) }, false},
	{"meta_info.finish_reason", func(d *document, v value) { d.finished = d.finished || v.kind == kindObject }, false},
	{"meta_info.finish_reason.type", func(d *document, v value) { d.failed = d.failed || string(v.text) == "abort" }, true},
}
