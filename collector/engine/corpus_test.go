package engine

import (
	"net/http"
	"testing"

	"grayfail/event"
)

const lines = "application/x-ndjson"

// TestCorpusErrors: each shape's way to fail after HTTP 200.
func TestCorpusErrors(t *testing.T) {
	for name, ex := range map[string]exchange{
		"ollama":           stream(lines, `{"model":"m","message":{"content":"x"},"done":false}`+"\n", `{"error":"an error was encountered"}`+"\n"),
		"tgi":              stream(events, `data:{"error":"Request failed during generation","error_type":"generation"}`+"\n\n"),
		"sglang":           stream(events, `data: {"text":"x","meta_info":{"finish_reason":{"type":"abort","message":"x"},"prompt_tokens":1}}`+"\n\n", done),
		"responses":        stream(events, `data: {"type":"response.failed","response":{"error":{"code":"server_error"}}}`+"\n\n"),
		"messages":         stream(events, "event: error\n"+`data: {"type":"error","error":{"type":"overloaded_error"}}`+"\n\n"),
		"responses, plain": stream("application/json", `{"id":"r","object":"response","status":"failed","error":{"code":"x"}}`),
	} {
		if got := ex.observe(EndedClean, ex.pieces...).Outcome; got != event.OutcomeError {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestNoHeaderTrap: absurd headers count nothing.
func TestNoHeaderTrap(t *testing.T) {
	for _, text := range []string{"", "-1", "1e9", "99999999999999", "2000000000", "x"} {
		if got := tgiHeader(http.Header{"X-Prompt-Tokens": {text}}).prompt; got.ok {
			t.Errorf("%q counts %d", text, got.n)
		}
	}
}
