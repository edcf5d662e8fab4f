package httploss

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// completion is an answer of an OpenAI-compatible server that is size bytes
// long, header not counted.
func completion(size int) ([]byte, error) {
	answer := func(text string) ([]byte, error) {
		return json.Marshal(map[string]any{
			"object": "text_completion", "model": "padding",
			"choices": []any{map[string]any{"index": 0, "text": text, "finish_reason": "stop"}},
			"usage":   map[string]int{"prompt_tokens": 1, "completion_tokens": 32, "total_tokens": 33},
		})
	}
	bare, err := answer("")
	if err != nil {
		return nil, err
	}
	if size < len(bare) {
		return nil, fmt.Errorf("an answer of %d bytes: %d at least", size, len(bare))
	}
	return answer(strings.Repeat("x", size-len(bare)))
}

// serve answers POST /v1/completions?size=N.
func serve(w http.ResponseWriter, r *http.Request) {
	size, err := strconv.Atoi(r.URL.Query().Get("size"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body, err := completion(size)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body)
}
