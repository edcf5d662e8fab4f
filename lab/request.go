package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// RequestOptions of one completion. The zero value is the lab's usual request.
type RequestOptions struct {
	URL    string // base URL; default: the engine's own, past any proxy
	Prompt string // default "The capital of France is"
	Tokens int    // default 32
}

// Answer of one completion.
type Answer struct {
	Start, End time.Time
	// Status is the HTTP status, 0 when there was none.
	Status int
	// Tokens generated, and the time the engine itself says it took.
	Tokens        int
	DecodeSeconds float64
	PromptTokens  int
	Err           error
}

// Latency of the whole request.
func (a Answer) Latency() time.Duration { return a.End.Sub(a.Start) }

// Rate is tokens per second of decode, n/t: the engine's own predicted_per_second
// is n/t or (n-1)/t by its version. 0 when the request failed.
func (a Answer) Rate() float64 {
	if a.DecodeSeconds <= 0 {
		return 0
	}
	return float64(a.Tokens) / a.DecodeSeconds
}

// EngineURL is the engine's server, inside the coordinator's namespace.
func (c *Cluster) EngineURL() string { return "http://127.0.0.1:" + strconv.Itoa(EnginePort) }

// HTTP is a client whose connections start in the coordinator's namespace.
func (c *Cluster) HTTP() *http.Client { return c.http }

// Get asks for a URL and wants status 200.
func (c *Cluster) Get(ctx context.Context, url string) error {
	_, err := c.Fetch(ctx, url)
	return err
}

// Fetch is Get that returns the body.
func (c *Cluster) Fetch(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.200s", url, resp.Status, body)
	}
	return body, err
}

// Request runs one completion to its end. The prompt is computed anew each
// time (cache_prompt false), so that every request is alike.
func (c *Cluster) Request(ctx context.Context, o RequestOptions) Answer {
	if o.URL == "" {
		o.URL = c.EngineURL()
	}
	if o.Prompt == "" {
		o.Prompt = "The capital of France is"
	}
	if o.Tokens == 0 {
		o.Tokens = 32
	}
	a := Answer{Start: time.Now()}
	a.Err = c.complete(ctx, o, &a)
	a.End = time.Now()
	return a
}

func (c *Cluster) complete(ctx context.Context, o RequestOptions, a *Answer) error {
	body, err := json.Marshal(map[string]any{
		"prompt": o.Prompt, "n_predict": o.Tokens, "ignore_eos": true, "cache_prompt": false,
	})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.URL+"/completion", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	a.Status = resp.StatusCode
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %.200s", resp.Status, answer)
	}
	var reply struct {
		Timings struct {
			PromptN     int     `json:"prompt_n"`
			PredictedN  int     `json:"predicted_n"`
			PredictedMS float64 `json:"predicted_ms"`
		} `json:"timings"`
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	t := reply.Timings
	if t.PredictedN == 0 || t.PredictedMS <= 0 {
		return fmt.Errorf("answer without timings: %.200s", answer)
	}
	a.Tokens, a.DecodeSeconds, a.PromptTokens = t.PredictedN, t.PredictedMS/1e3, t.PromptN
	return nil
}
