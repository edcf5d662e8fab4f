package event

import (
	"encoding/json"
	"fmt"
)

// requestJSON is the request record of a recording and of the push API.
type requestJSON struct {
	Type         string  `json:"type,omitempty"`
	ID           string  `json:"id"`
	Source       string  `json:"source,omitempty"`
	Model        string  `json:"model"`
	Start        string  `json:"start,omitempty"`
	FirstToken   string  `json:"first_token,omitempty"`
	End          string  `json:"end,omitempty"`
	StartNS      int64   `json:"start_ns,omitempty"`
	FirstTokenNS int64   `json:"first_token_ns,omitempty"`
	EndNS        int64   `json:"end_ns,omitempty"`
	Prompt       int     `json:"prompt_tokens"`
	Cached       int     `json:"cached_tokens"`
	Generated    int     `json:"generated_tokens"`
	PrefillRate  float64 `json:"prefill_tokens_per_second,omitempty"`
	DecodeRate   float64 `json:"decode_tokens_per_second,omitempty"`
	Outcome      Outcome `json:"outcome,omitempty"`
	Concurrency  float64 `json:"concurrency,omitempty"`
	Condition    string  `json:"condition,omitempty"`
	// What follows is beyond the contract's minimum, so that a replay says the
	// same as the live detector.
	LowConfidence bool   `json:"low_confidence,omitempty"`
	Fingerprint   string `json:"fingerprint,omitempty"`
	Status        int    `json:"status,omitempty"` // HTTP
}

func parseRequest(line []byte) (*Request, error) {
	var j requestJSON
	if err := unmarshal(line, &j); err != nil {
		return nil, err
	}
	r := &Request{
		ID: j.ID, Source: j.Source, Model: j.Model, Condition: j.Condition,
		PromptTokens: j.Prompt, CachedTokens: j.Cached, GeneratedTokens: j.Generated,
		PrefillRate: j.PrefillRate, DecodeRate: j.DecodeRate,
		Outcome: j.Outcome, Concurrency: j.Concurrency,
		LowConfidence: j.LowConfidence, Fingerprint: j.Fingerprint, Status: j.Status,
	}
	if r.Outcome == "" {
		r.Outcome = OutcomeOK
	}
	var err error
	if r.StartNS, err = stamp("start", j.Start, j.StartNS); err != nil {
		return nil, err
	}
	if r.FirstTokenNS, err = stamp("first_token", j.FirstToken, j.FirstTokenNS); err != nil {
		return nil, err
	}
	if r.EndNS, err = stamp("end", j.End, j.EndNS); err != nil {
		return nil, err
	}
	return r, checkRequest(r)
}

// checkRequest says which field makes a request unusable. A request that did
// not end well needs no rate: it is slow by its outcome.
func checkRequest(r *Request) error {
	if r.Model == "" {
		return &FieldError{"model", "is needed"}
	}
	switch r.Outcome {
	case OutcomeOK, OutcomeError, OutcomeTimeout, OutcomeCanceled:
	default:
		return &FieldError{"outcome", fmt.Sprintf("unknown value %q: allowed are ok, error, timeout, canceled", r.Outcome)}
	}
	for _, f := range []struct {
		name string
		n    int
	}{{"prompt_tokens", r.PromptTokens}, {"cached_tokens", r.CachedTokens}, {"generated_tokens", r.GeneratedTokens}} {
		if err := notNegative(f.name, f.n); err != nil {
			return err
		}
	}
	if err := plausible("prefill_tokens_per_second", r.PrefillRate); err != nil {
		return err
	}
	if err := plausible("decode_tokens_per_second", r.DecodeRate); err != nil {
		return err
	}
	if err := checkDurations(r); err != nil {
		return err
	}
	if r.Status < 0 || r.Status > 999 {
		return &FieldError{"status", fmt.Sprintf("%d is outside 0 to 999", r.Status)}
	}
	if len(r.Fingerprint) > maxFingerprint {
		return &FieldError{"fingerprint", fmt.Sprintf("is longer than %d bytes", maxFingerprint)}
	}
	if r.Concurrency < 0 || r.Concurrency > 1e6 {
		return &FieldError{"concurrency", fmt.Sprintf("%g is outside 0 to 1e6", r.Concurrency)}
	}
	if r.StartNS > 0 && r.FirstTokenNS > 0 && r.FirstTokenNS < r.StartNS {
		return &FieldError{"first_token", "is before start"}
	}
	if r.EndNS > 0 && max(r.StartNS, r.FirstTokenNS) > r.EndNS {
		return &FieldError{"end", "is before start or first_token"}
	}
	if r.Outcome == OutcomeOK && r.DecodeRate == 0 && r.PrefillRate == 0 &&
		(r.GeneratedTokens == 0 || r.FirstTokenNS == 0 || r.EndNS == 0) {
		return &FieldError{"decode_tokens_per_second", "is needed: give a rate, or generated_tokens with first_token and end"}
	}
	return nil
}

// longestPhase bounds what one phase may take, in seconds. Beyond it a unit was
// mixed up, and one such record would drown every sum of lost seconds.
const longestPhase = 30 * 24 * 3600.0

const maxFingerprint = 256

// checkDurations refuses a rate that makes its tokens take longer than any
// request does.
func checkDurations(r *Request) error {
	for _, phase := range []struct {
		field  string
		rate   float64
		tokens int
	}{
		{"decode_tokens_per_second", r.DecodeRate, max(1, r.GeneratedTokens)},
		{"prefill_tokens_per_second", r.PrefillRate, max(1, r.PromptTokens)},
	} {
		if phase.rate > 0 && float64(phase.tokens)/phase.rate > longestPhase {
			return &FieldError{phase.field, fmt.Sprintf("%g tokens per second make %d tokens take more than 30 days", phase.rate, phase.tokens)}
		}
	}
	return nil
}

// MarshalJSON writes the request record; times as Unix nanoseconds.
func (r *Request) MarshalJSON() ([]byte, error) {
	return json.Marshal(requestJSON{
		Type: "request", ID: r.ID, Source: r.Source, Model: r.Model,
		StartNS: r.StartNS, FirstTokenNS: r.FirstTokenNS, EndNS: r.EndNS,
		Prompt: r.PromptTokens, Cached: r.CachedTokens, Generated: r.GeneratedTokens,
		PrefillRate: r.PrefillRate, DecodeRate: r.DecodeRate,
		Outcome: r.Outcome, Concurrency: r.Concurrency, Condition: r.Condition,
		LowConfidence: r.LowConfidence, Fingerprint: r.Fingerprint, Status: r.Status,
	})
}
