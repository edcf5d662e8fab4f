package engine

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"grayfail/event"
)

// want is what a captured call must come to. The figures are those of the
// raw answers; ms are the clock of the replay (a piece each 10 ms).
type want struct {
	id                       string
	model                    string
	prompt, cached, generate int
	prefill, decode          float64
	firstMS, endMS           float64 // firstMS -1: not known
	outcome                  event.Outcome
	choices                  int
	guessed                  bool
}

func TestLlamaCPP(t *testing.T) {
	const model = "/tmp/model.gguf"
	for name, want := range map[string]want{
		// The first piece holds the role chunk and the first token.
		"chat_stream":       {"chatcmpl-VtuBTfmgDENX3eKygXSmR52fFIucPX6t", model, 87, 0, 24, 87 / 87.204e-3, 24 / 92.673e-3, 10, 250, event.OutcomeOK, 1, false},
		"chat_stream_usage": {"chatcmpl-4JZdyVcoDjjaoj5nPy4XYK8F1kRzgxiV", model, 87, 0, 24, 87 / 83.303e-3, 24 / 93.451e-3, 10, 250, event.OutcomeOK, 1, false},
		// Timings on each chunk: the last ones count.
		"chat_stream_timings_per_token": {"chatcmpl-nHkNS7UVC1b7p4bZj5eDklVA8I5oewev", model, 87, 0, 24, 87 / 84.826e-3, 24 / 89.111e-3, 10, 250, event.OutcomeOK, 1, false},
		// Two progress chunks with a role come before the first token.
		"chat_stream_progress":   {"chatcmpl-GGqPVSArK8WMoK4eV0i0bpuzTygy4Z8C", model, 1554, 0, 8, 1554 / 1767.9e-3, 8 / 90.938e-3, 30, 110, event.OutcomeOK, 1, false},
		"native_stream_progress": {"ours", model, 1504, 0, 8, 1504 / 1635.124e-3, 8 / 87.669e-3, 30, 110, event.OutcomeOK, 1, false},
		// predicted_ms 0.001 is no decode rate.
		"chat_stream_one_token":   {"chatcmpl-P2CHLlKmZMkEcwRWFtVuvjBX3SmxKpEU", model, 87, 0, 1, 87 / 87.966e-3, 0, 10, 20, event.OutcomeOK, 1, false},
		"native_one_token":        {"ours", model, 36, 0, 1, 36 / 26.209e-3, 0, 9.999, 10, event.OutcomeOK, 1, false},
		"chat_stream_model_alias": {"chatcmpl-lbqrJAMyejOxf9jLYGqQFQVKMhLH4YHj", model, 87, 0, 24, 87 / 56.279e-3, 24 / 67.862e-3, 10, 250, event.OutcomeOK, 1, false},
		"native_stream":           {"ours", model, 36, 0, 24, 36 / 30.262e-3, 24 / 58.694e-3, 10, 250, event.OutcomeOK, 1, false},
		// prompt_n leaves the cached tokens out.
		"native_cached":   {"ours", model, 108, 107, 24, 1 / 3.2e-3, 24 / 73.915e-3, 0, 10, event.OutcomeOK, 1, false},
		"native_uncached": {"ours", model, 108, 36, 24, 72 / 71.602e-3, 24 / 70.874e-3, 0, 10, event.OutcomeOK, 1, false},
		"chat_plain":      {"chatcmpl-IWewAhJNtdyfC4Cip2YJcm9iRtTcVp0R", model, 87, 0, 24, 87 / 87.397e-3, 24 / 95.885e-3, 0, 10, event.OutcomeOK, 1, false},
		"completions_stream": {"chatcmpl-s4YXu1uw1egfFb8p9ZwBc6t0YFeu4vSG", model, 17, 0, 24, 17 / 17.997e-3, 24 / 68.219e-3, 10, 250,
			event.OutcomeOK, 1, false},
		// Two choices, told apart by index; the rate is that of one sequence.
		"chat_n2_stream": {"chatcmpl-VMwp462w21ZQlDei4Czbqet4ibMABI9z", model, 87, 0, 12, 87 / 56.095e-3, 12 / (26.968e-3 + 26.995e-3), 10, 140,
			event.OutcomeOK, 2, false},
		// Several prompts in one call; a "data: null" comes first. The longest
		// prompt stands for all.
		"native_array_stream": {"ours", model, 17, 0, 12, 17 / 23.63e-3, 12 / (20.17e-3 + 20.186e-3), 20, 150, event.OutcomeOK, 2, false},
		// The same engine in the shapes of others.
		"responses_stream": {"resp_aJ2HnAjWc6qY9phED4VPExiRlquItxWB", model, 59, 4, 12, 55 / 42.628e-3, 12 / 31.475e-3, 10, 130, event.OutcomeOK, 1, false},
		"responses_plain":  {"resp_ZXTrrMdUlyfFUtyMeEtvnRkCydjcUd2N", model, 59, 58, 12, 0, 0, -1, 10, event.OutcomeOK, 1, false},
		"messages_stream":  {"chatcmpl-xDTydZfKzIUYjAhunX7BpN6cjyqNPKQl", model, 87, 86, 12, 1 / 10e-3, 11 / 110e-3, 10, 130, event.OutcomeOK, 1, false},
		"messages_plain":   {"chatcmpl-iq8Ttmm37aibRPSL38DTNGJCwKADLxZd", model, 87, 86, 12, 0, 0, -1, 10, event.OutcomeOK, 1, false},
		// The engine was killed: no last chunk, so chunks had to be counted.
		"chat_stream_killed": {"chatcmpl-BJHtZ2T5UZOiz06S3bylCfxDuVvMuhb0", model, 0, 0, 119, 0, 100, 10, 1190, event.OutcomeError, 1, true},
		"chat_error_400":     {"ours", "unknown", 0, 0, 0, 0, 0, -1, 10, event.OutcomeError, 1, false},
		"chat_error_json":    {"ours", "unknown", 0, 0, 0, 0, 0, -1, 10, event.OutcomeError, 1, false},
		"native_error_empty": {"ours", "unknown", 0, 0, 0, 0, 0, -1, 10, event.OutcomeError, 1, false},
		"infill_stream":      {"ours", "unknown", 0, 0, 0, 0, 0, -1, 10, event.OutcomeError, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			ex := load(t, fixtures, name)
			o := ex.open()
			for i, piece := range ex.pieces {
				o.ResponseBody(piece, pieceNS(i))
			}
			ending := EndedClean
			if ex.cut {
				ending = EndedCut
			}
			got := o.Finish(ending, pieceNS(len(ex.pieces)-1))
			if diff := cmp.Diff(want.request(ex), got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if o.Choices() != want.choices {
				t.Errorf("choices %d, want %d", o.Choices(), want.choices)
			}
		})
	}
}

// printed finds the fingerprint of an answer the simple way.
var printed = regexp.MustCompile(`"system_fingerprint":\s*"([^"]*)"`)

func (w want) request(ex exchange) event.Request {
	r := event.Request{
		ID: w.id, Source: "main", Model: w.model, StartNS: startNS, EndNS: startNS + int64(w.endMS*1e6),
		PromptTokens: w.prompt, CachedTokens: w.cached, GeneratedTokens: w.generate,
		PrefillRate: w.prefill, DecodeRate: w.decode, Outcome: w.outcome, LowConfidence: w.guessed,
	}
	r.Status = ex.status
	if m := printed.FindSubmatch(bytes.Join(ex.pieces, nil)); m != nil {
		r.Fingerprint = string(m[1])
	}
	if w.firstMS >= 0 {
		r.FirstTokenNS = startNS + int64(w.firstMS*1e6)
	}
	return r
}
