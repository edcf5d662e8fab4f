package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Server answers like llama-server.
type Server struct {
	Coordinator *Coordinator
	slots       chan struct{}
	// failed receives the first error of a worker: llama-server aborts then.
	failed chan error
}

// NewServer serves slots requests at once.
func NewServer(c *Coordinator, slots int) *Server {
	return &Server{Coordinator: c, slots: make(chan struct{}, slots), failed: make(chan error, 1)}
}

// Failed tells of a lost worker. The process is expected to end.
func (s *Server) Failed() <-chan error { return s.failed }

// Handler routes the native and the OpenAI-compatible paths.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"status": "ok"})
	})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{"id": Name, "object": "model"}}})
	})
	mux.HandleFunc("POST /completion", s.handle(native))
	mux.HandleFunc("POST /v1/completions", s.handle(text))
	mux.HandleFunc("POST /v1/chat/completions", s.handle(chat))
	return mux
}

// request holds what the three dialects ask for.
type request struct {
	Prompt    string `json:"prompt"`
	Messages  []any  `json:"messages"`
	NPredict  int    `json:"n_predict"`
	MaxTokens int    `json:"max_tokens"`
	Stream    bool   `json:"stream"`

	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

func (r *request) tokens() int {
	for _, n := range []int{r.NPredict, r.MaxTokens} {
		if n > 0 {
			return n
		}
	}
	return 32
}

// promptTokens is one for each word and message, and one to begin with.
func (r *request) promptTokens() int { return 1 + len(strings.Fields(r.Prompt)) + len(r.Messages) }

// timings as llama-server gives them, builds of 2026: the first token is the
// prompt's, so the rate is (n-1)/t.
type timings struct {
	CacheN      int     `json:"cache_n"`
	PromptN     int     `json:"prompt_n"`
	PromptMS    float64 `json:"prompt_ms"`
	PromptRate  float64 `json:"prompt_per_second"`
	PredictedN  int     `json:"predicted_n"`
	PredictedMS float64 `json:"predicted_ms"`
	PredictRate float64 `json:"predicted_per_second"`
}

func (s *Server) handle(d dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req request
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 8<<20)).Decode(&req); err != nil {
			writeJSON(w, http.StatusBadRequest, errorBody(http.StatusBadRequest, err))
			return
		}
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-r.Context().Done():
			return
		}
		out := answer{w: w, dialect: d, request: &req}
		t, err := s.generate(r.Context(), &req, out.token)
		if err != nil {
			out.fail(err)
			return
		}
		out.finish(t)
	}
}

// generate calls token for each one as it is made.
func (s *Server) generate(ctx context.Context, req *request, token func(i int) error) (timings, error) {
	start := time.Now()
	t := timings{PromptN: req.promptTokens()}
	if err := s.workers(s.Coordinator.Prompt(t.PromptN)); err != nil {
		return t, err
	}
	first := time.Now()
	t.PromptMS = first.Sub(start).Seconds() * 1e3
	t.PromptRate = float64(t.PromptN) / t.PromptMS * 1e3
	for i := range req.tokens() {
		if i > 0 {
			if err := s.workers(s.Coordinator.Token()); err != nil {
				return t, err
			}
		}
		if err := ctx.Err(); err != nil {
			return t, err
		}
		if err := token(i); err != nil {
			return t, err
		}
		t.PredictedN++
	}
	t.PredictedMS = time.Since(first).Seconds() * 1e3
	if t.PredictedN > 1 {
		t.PredictRate = float64(t.PredictedN-1) / t.PredictedMS * 1e3
	}
	return t, nil
}

// workers notes a lost worker.
func (s *Server) workers(err error) error {
	if err != nil {
		select {
		case s.failed <- err:
		default:
		}
	}
	return err
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client left: nobody to tell
}

func errorBody(code int, err error) map[string]any {
	return map[string]any{"error": map[string]any{"code": code, "message": err.Error(), "type": fmt.Sprintf("%s_error", Name)}}
}
