package standin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// dialect is the shape of an answer.
type dialect int

const (
	native dialect = iota // POST /completion
	text                  // POST /v1/completions
	chat                  // POST /v1/chat/completions
)

// word is every token's text.
const word = " word"

// answer writes one response, streamed or whole.
type answer struct {
	w       http.ResponseWriter
	dialect dialect
	request *request
	begun   bool // a stream has sent its head
	text    strings.Builder
}

// token sends the i-th token on a stream, or keeps it.
func (a *answer) token(i int) error {
	if !a.request.Stream {
		a.text.WriteString(word)
		return nil
	}
	if !a.begun {
		a.begun = true
		a.w.Header().Set("Content-Type", "text/event-stream")
		a.w.WriteHeader(http.StatusOK)
		if a.dialect == chat { // the role alone is no token
			if err := a.event(a.chunk(map[string]any{"role": "assistant", "content": nil}, nil)); err != nil {
				return err
			}
		}
	}
	if a.dialect == native {
		return a.event(map[string]any{"content": word, "stop": false, "tokens_predicted": i + 1})
	}
	return a.event(a.chunk(word, nil))
}

// finish sends what follows the last token.
func (a *answer) finish(t timings) {
	if !a.request.Stream {
		writeJSON(a.w, http.StatusOK, a.whole(t))
		return
	}
	switch {
	case a.dialect == native: // ends without [DONE]
		_ = a.event(map[string]any{"content": "", "stop": true, "stop_type": "limit", "model": Name, "tokens_predicted": t.PredictedN, "timings": t})
		return
	case a.request.StreamOptions.IncludeUsage: // timings on the usage chunk
		_ = a.event(a.chunk(nil, "length"))
		usage := a.chunk(nil, nil)
		usage["choices"], usage["usage"], usage["timings"] = []any{}, t.usage(), t
		_ = a.event(usage)
	default:
		last := a.chunk(nil, "length")
		last["timings"] = t
		_ = a.event(last)
	}
	_, _ = fmt.Fprint(a.w, "data: [DONE]\n\n")
}

// fail: before the first token a status, after it an event, and no [DONE].
func (a *answer) fail(err error) {
	if a.begun {
		_ = a.event(errorBody(http.StatusInternalServerError, err))
		return
	}
	writeJSON(a.w, http.StatusInternalServerError, errorBody(http.StatusInternalServerError, err))
}

func (t timings) usage() map[string]any {
	return map[string]any{"prompt_tokens": t.PromptN, "completion_tokens": t.PredictedN, "total_tokens": t.PromptN + t.PredictedN}
}

func (a *answer) whole(t timings) map[string]any {
	if a.dialect == native {
		return map[string]any{"content": a.text.String(), "stop": true, "stop_type": "limit", "model": Name,
			"tokens_predicted": t.PredictedN, "tokens_evaluated": t.PromptN, "timings": t}
	}
	choice := map[string]any{"index": 0, "finish_reason": "length"}
	object := "text_completion"
	if a.dialect == chat {
		object = "chat.completion"
		choice["message"] = map[string]any{"role": "assistant", "content": a.text.String()}
	} else {
		choice["text"] = a.text.String()
	}
	return map[string]any{"object": object, "model": Name, "choices": []any{choice}, "usage": t.usage(), "timings": t}
}

// chunk of an OpenAI-compatible stream. delta is text, a chat delta or nil.
func (a *answer) chunk(delta, finish any) map[string]any {
	choice := map[string]any{"index": 0, "finish_reason": finish}
	object := "text_completion"
	if a.dialect == chat {
		object = "chat.completion.chunk"
		switch d := delta.(type) {
		case string:
			choice["delta"] = map[string]any{"content": d}
		case nil:
			choice["delta"] = map[string]any{}
		default:
			choice["delta"] = d
		}
	} else {
		s, _ := delta.(string)
		choice["text"] = s
	}
	return map[string]any{"object": object, "model": Name, "choices": []any{choice}}
}

func (a *answer) event(body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.w, "data: %s\n\n", data); err != nil {
		return err
	}
	return http.NewResponseController(a.w).Flush()
}
