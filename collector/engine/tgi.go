package engine

import (
	"net/http"
	"strconv"
)

// tgi is the native shape of text-generation-inference (/generate and
// /generate_stream). An event is exactly one token; the last one has
// generated_text and details as well.
var tgi = []field{
	{"token", func(d *document, _ value) { d.known = true }, false},
	{"token.text", said, false},
	{"generated_text", func(d *document, v value) { d.over = d.over || v.kind == kindString }, false},
	{"details.generated_tokens", func(d *document, v value) { d.usage.completion.set(v) }, false},
}

// tgiHeader reads the counts of an answer that is not streamed. Its times are
// no rates: x-time-per-token is in whole milliseconds and includes the prefill.
func tgiHeader(header http.Header) usage {
	return usage{prompt: headerTokens(header, "X-Prompt-Tokens"), completion: headerTokens(header, "X-Generated-Tokens")}
}

func headerTokens(header http.Header, name string) tokens {
	n, err := strconv.ParseUint(header.Get(name), 10, 31)
	return tokens{int(n), err == nil && n <= maxCount}
}
