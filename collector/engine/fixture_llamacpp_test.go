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

// TestLlamaCPP holds the captures that the corpus (TestConformance) leaves out.
func TestLlamaCPP(t *testing.T) {
	const model = "/tmp/model.gguf"
	for name, want := range map[string]want{
		// predicted_ms 0.001 is no decode rate.
		"native_one_token":        {"ours", model, 36, 0, 1, 36 / 26.209e-3, 0, 9.999, 10, event.OutcomeOK, 1, false},
		"chat_stream_model_alias": {"chatcmpl-lbqrJAMyejOxf9jLYGqQFQVKMhLH4YHj", model, 87, 0, 24, 87 / 56.279e-3, 24 / 67.862e-3, 10, 250, event.OutcomeOK, 1, false},
		// prompt_n leaves the cached tokens out.
		"native_uncached": {"ours", model, 108, 36, 24, 72 / 71.602e-3, 24 / 70.874e-3, 0, 10, event.OutcomeOK, 1, false},
		// Two choices, told apart by index; the rate is that of one sequence.
		"chat_n2_stream": {"chatcmpl-VMwp462w21ZQlDei4Czbqet4ibMABI9z", model, 87, 0, 12, 87 / 56.095e-3, 12 / (26.968e-3 + 26.995e-3), 10, 140,
			event.OutcomeOK, 2, false},
		// The same engine in the shapes of others.
		"responses_plain":    {"resp_ZXTrrMdUlyfFUtyMeEtvnRkCydjcUd2N", model, 59, 58, 12, 0, 0, -1, 10, event.OutcomeOK, 1, false},
		"messages_plain":     {"chatcmpl-iq8Ttmm37aibRPSL38DTNGJCwKADLxZd", model, 87, 86, 12, 0, 0, -1, 10, event.OutcomeOK, 1, false},
		"chat_error_json":    {"ours", "unknown", 0, 0, 0, 0, 0, -1, 10, event.OutcomeError, 1, false},
		"native_error_empty": {"ours", "unknown", 0, 0, 0, 0, 0, -1, 10, event.OutcomeError, 1, false},
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
