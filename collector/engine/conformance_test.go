package engine

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"grayfail/event"
	"grayfail/internal/testkit"
)

// conformance is the corpus: every engine and shape that we say we read. What
// it comes to also stands in docs/engines.md.
func conformance(t testing.TB) []testkit.Answer { return testkit.LoadAnswers(t, "testdata") }

func asExchange(c testkit.Call) exchange {
	return exchange{asked: c.Asked, status: c.Status, header: c.Header, pieces: c.Pieces, cut: c.Cut}
}

// ending is how the captured call ended.
func (ex exchange) ending() Ending {
	if ex.cut {
		return EndedCut
	}
	return EndedClean
}

// replayed observes the pieces as they came; splitAt cuts the piece that holds
// that byte of the body into two reads (-1: none), step cuts every piece into
// reads of that many bytes (0: none).
func (ex exchange) replayed(splitAt, step int) (event.Request, *Observer) {
	o := ex.open()
	for i, piece := range ex.pieces {
		if splitAt > 0 && splitAt < len(piece) {
			o.ResponseBody(piece[:splitAt], pieceNS(i))
			o.ResponseBody(piece[splitAt:], pieceNS(i))
		} else if step > 0 {
			for at := 0; at < len(piece); at += step {
				o.ResponseBody(piece[at:min(at+step, len(piece))], pieceNS(i))
			}
		} else {
			o.ResponseBody(piece, pieceNS(i))
		}
		splitAt -= len(piece)
	}
	return o.Finish(ex.ending(), pieceNS(len(ex.pieces)-1)), o
}

func wanted(w testkit.AnswerWant) event.Request {
	r := event.Request{
		ID: w.ID, Source: "main", Model: w.Model, StartNS: startNS, EndNS: startNS + int64(w.EndMS*1e6),
		PromptTokens: w.PromptTokens, CachedTokens: w.CachedTokens, GeneratedTokens: w.GeneratedTokens,
		PrefillRate: w.PrefillRate, DecodeRate: w.DecodeRate, Outcome: event.Outcome(w.Outcome),
		LowConfidence: w.LowConfidence, Status: w.Status, Fingerprint: w.Fingerprint,
	}
	if w.FirstTokenMS != nil {
		r.FirstTokenNS = startNS + int64(*w.FirstTokenMS*1e6)
	}
	return r
}

// nearly forgives the rounding of the corpus' figures.
var nearly = cmpopts.EquateApprox(1e-6, 0)

func TestConformance(t *testing.T) {
	for _, a := range conformance(t) {
		t.Run(a.Engine+" "+a.Shape, func(t *testing.T) {
			if !Inference("POST", a.Path) {
				t.Errorf("%s is not taken for a call to an engine", a.Path)
			}
			got, o := asExchange(a.Call).replayed(-1, 0)
			if diff := cmp.Diff(wanted(a.Want), got, nearly); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if o.Choices() != a.Want.Choices {
				t.Errorf("choices %d, want %d", o.Choices(), a.Want.Choices)
			}
		})
	}
}

// TestConformanceSplits: a read that ends at any byte, and reads of one byte
// each, give the same record to the last bit.
func TestConformanceSplits(t *testing.T) {
	for _, a := range conformance(t) {
		t.Run(a.Engine+" "+a.Shape, func(t *testing.T) {
			ex := asExchange(a.Call)
			stride := stride(ex)
			want, _ := ex.replayed(-1, 0)
			if got, _ := ex.replayed(-1, 1); got != want {
				t.Errorf("byte by byte (-want +got):\n%s", cmp.Diff(want, got))
			}
			for i := 1; i < len(ex.body()); i += stride {
				if got, _ := ex.replayed(i, 0); got != want {
					t.Fatalf("split at %d (-want +got):\n%s", i, cmp.Diff(want, got))
				}
			}
		})
	}
}

// stride is 1, but for long captures, which repeat themselves.
func stride(ex exchange) int {
	if n := len(ex.body()); n > 4608 {
		return 1 + n/2048
	}
	return 1
}

// TestConformanceJoined: all bytes in one read lose what only their times can
// tell, a rate by our clock, and nothing else.
func TestConformanceJoined(t *testing.T) {
	for _, a := range conformance(t) {
		t.Run(a.Engine+" "+a.Shape, func(t *testing.T) {
			ex := asExchange(a.Call)
			want := wanted(a.Want)
			want.EndNS = pieceNS(0)
			if a.DecodeFrom != "engine" {
				want.DecodeRate = 0
			}
			got := ex.observe(ex.ending(), ex.body())
			// The time of the first token, and a prefill rate made with it,
			// are those of the one read.
			if (want.FirstTokenNS != 0) != (got.FirstTokenNS != 0) {
				t.Errorf("first token at %d, want %d", got.FirstTokenNS, want.FirstTokenNS)
			}
			want.FirstTokenNS = got.FirstTokenNS
			if a.PrefillFrom == "usage" {
				want.PrefillRate = float64(want.FreshPromptTokens()) / tick.Seconds()
			}
			if diff := cmp.Diff(want, got, nearly); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestConformanceCuts: whatever byte an answer stops at, it is ok exactly from
// the end of its last choice on.
func TestConformanceCuts(t *testing.T) {
	for _, a := range conformance(t) {
		t.Run(a.Engine+" "+a.Shape, func(t *testing.T) {
			ex := asExchange(a.Call)
			body, o := ex.body(), ex.open()
			if a.WholeAt > len(body) || a.WholeAt == 0 || (a.WholeAt < 0) != (a.Want.Outcome != "ok") {
				t.Fatalf("whole at %d of %d bytes, outcome %s", a.WholeAt, len(body), a.Want.Outcome)
			}
			for i := range len(body) + 1 { // Finish may be asked again as more comes
				isWhole := a.WholeAt > 0 && i >= a.WholeAt
				for ending, want := range map[Ending]event.Outcome{
					EndedClean: event.OutcomeError, EndedCut: event.OutcomeError,
					EndedClient: event.OutcomeCanceled, EndedTimeout: event.OutcomeTimeout,
				} {
					got := o.Finish(ending, pieceNS(0)).Outcome
					switch {
					case isWhole && got == event.OutcomeOK, !isWhole && got == want:
					case a.WholeAt < 0 && got == event.OutcomeError: // said so before
					default:
						t.Fatalf("cut at %d of %d (whole at %d), ending %d: %s", i, len(body), a.WholeAt, ending, got)
					}
				}
				o.ResponseBody(body[i:min(i+1, len(body))], pieceNS(0))
			}
		})
	}
}

// TestConformanceCoalesced: two neighbouring pieces in one read, as a busy
// network hands them over, change no count and no outcome.
func TestConformanceCoalesced(t *testing.T) {
	for _, a := range conformance(t) {
		ex := asExchange(a.Call)
		for i := 1; i < len(ex.pieces); i++ {
			joined := ex
			joined.pieces = append([][]byte{}, ex.pieces[:i-1]...)
			joined.pieces = append(joined.pieces, bytes.Join(ex.pieces[i-1:i+1], nil))
			joined.pieces = append(joined.pieces, ex.pieces[i+1:]...)
			got, _ := joined.replayed(-1, 0)
			w := a.Want
			if got.Outcome != event.Outcome(w.Outcome) || got.ID != w.ID || got.Model != w.Model || got.PromptTokens != w.PromptTokens || got.CachedTokens != w.CachedTokens {
				t.Errorf("%s %s, pieces %d and %d in one: %+v", a.Engine, a.Shape, i-1, i, got)
			}
			if !w.LowConfidence && got.GeneratedTokens != w.GeneratedTokens {
				t.Errorf("%s %s, pieces %d and %d in one: %d tokens, want %d", a.Engine, a.Shape, i-1, i, got.GeneratedTokens, w.GeneratedTokens)
			}
		}
	}
}
