package engine

// messages is the shape of /v1/messages (Anthropic; llama.cpp and vLLM speak
// it too). input_tokens leaves out what was read from or written to the cache.
// A stream ends with message_stop.
var messages = []field{
	{"delta.text", said, false},
	{"delta.thinking", said, false},
	{"delta.partial_json", said, false},
	{"message.id", func(d *document, v value) { d.setID(v) }, true},
	{"message.model", func(d *document, v value) { d.setModel(v) }, true},
	{"message.usage.input_tokens", func(d *document, v value) { d.usage.prompt.set(v) }, false},
	{"message.usage.cache_read_input_tokens", func(d *document, v value) { d.usage.read.set(v) }, false},
	{"message.usage.cache_creation_input_tokens", func(d *document, v value) { d.usage.written.set(v) }, false},
	{"usage.cache_read_input_tokens", func(d *document, v value) { d.usage.read.set(v) }, false},
	{"usage.cache_creation_input_tokens", func(d *document, v value) { d.usage.written.set(v) }, false},
}

// messageType is what "type" means in this shape; responses calls it.
func messageType(d *document, v value) {
	switch string(v.text) {
	case "message_stop":
		d.known, d.over = true, true
	case "message_start", "message_delta", "content_block_start", "content_block_delta", "content_block_stop":
		d.known = true
	}
}
