package detector

import (
	"math"

	"grayfail/event"
)

// phaseView is what the rule and the ledger need of one phase of a request.
type phaseView struct {
	phase event.Phase
	// rate in tokens per second; 0 when it cannot be known.
	rate float64
	// tokens that rate counts; 0 when not known.
	tokens float64
	// startNS..endNS is the window whose exchanges are looked at; both 0 when
	// the request does not say.
	startNS, endNS int64
	// seconds the phase took by its own clock.
	seconds float64
	// tooShort: too few tokens for a verdict.
	tooShort bool
	// context is the number of tokens that the rate depends on, output the
	// number generated; for the strata.
	context, output int
}

// judgeable says whether the phase can be compared and learned from.
func (v *phaseView) judgeable() bool { return v.rate > 0 && !v.tooShort }

// decodeView reads the decode phase: from the first token to the end.
func decodeView(r *event.Request, c *Config) phaseView {
	v := phaseView{
		phase: event.PhaseDecode, rate: r.DecodeRate, tokens: float64(r.GeneratedTokens),
		context: r.PromptTokens + r.GeneratedTokens, output: r.GeneratedTokens,
	}
	elapsed := span(r.FirstTokenNS, r.EndNS)
	if v.rate <= 0 && r.GeneratedTokens >= 2 && elapsed > 0 {
		v.rate = float64(r.GeneratedTokens-1) / elapsed
	}
	// A source that gives a rate alone does not say how many tokens there
	// were: absence is not zero.
	countKnown := r.GeneratedTokens > 0 || r.DecodeRate <= 0
	v.tooShort = countKnown && r.GeneratedTokens < c.MinDecodeTokens
	v.place(r.FirstTokenNS, r.EndNS, elapsed)
	return v
}

// prefillView reads the prefill phase. Its rate must be given: the time to the
// first token holds the queue too, and a queue is not a slow prefill.
func prefillView(r *event.Request, c *Config) phaseView {
	fresh := r.FreshPromptTokens()
	v := phaseView{
		phase: event.PhasePrefill, rate: r.PrefillRate, tokens: float64(fresh), context: fresh,
	}
	countKnown := r.PromptTokens > 0 || r.PrefillRate <= 0
	v.tooShort = countKnown && fresh < c.MinPrefillTokens
	// The prefill ends at the first token; what the request waited for before
	// it is not the prefill's.
	v.place(0, r.FirstTokenNS, 0)
	return v
}

// place puts the phase on the time line. Rate and times may come from two
// clocks (the engine's and a proxy's), and engines count n or n-1 tokens: the
// times hold where they agree with the rate, else the rate does.
func (v *phaseView) place(startNS, endNS int64, elapsed float64) {
	if v.rate > 0 && v.tokens > 0 {
		v.seconds = v.tokens / v.rate
		if elapsed > 0 {
			counted := v.rate * elapsed
			switch {
			case math.Abs(counted-(v.tokens-1)) < math.Abs(counted-v.tokens):
				if counted > 0.8*v.tokens {
					v.tokens--
					v.seconds = elapsed
				}
			case counted < 1.2*v.tokens:
				v.seconds = elapsed
			}
		}
	} else if elapsed > 0 {
		v.seconds = elapsed
		if v.tokens == 0 {
			v.tokens = v.rate * elapsed
		}
	}
	if endNS <= 0 {
		return
	}
	v.endNS = endNS
	v.startNS = max(1, endNS-int64(v.seconds*1e9))
	if startNS > 0 && startNS < endNS {
		v.startNS = min(v.startNS, startNS)
	}
}

// failedView is the decode phase of a request that ended in error or timeout:
// everything since its first token, or since its start when none came.
func failedView(r *event.Request, c *Config) phaseView {
	v := decodeView(r, c)
	begin := r.FirstTokenNS
	if begin == 0 {
		begin = r.StartNS
	}
	if elapsed := span(begin, r.EndNS); elapsed > 0 {
		v.startNS, v.endNS, v.seconds = begin, r.EndNS, elapsed
	}
	return v
}

// span is the time from a to b in seconds; 0 when one is unknown.
func span(a, b int64) float64 {
	if a <= 0 || b <= a {
		return 0
	}
	return float64(b-a) / 1e9
}

// interval is when the request was in flight, as far as it says; ok is false
// when that cannot be known.
func interval(r *event.Request) (startNS, endNS int64, ok bool) {
	start := r.StartNS
	if start == 0 {
		start = r.FirstTokenNS
		if start == 0 && r.DecodeRate > 0 && r.GeneratedTokens > 0 {
			start = r.EndNS - int64(float64(r.GeneratedTokens)/r.DecodeRate*1e9)
		}
	}
	return start, r.EndNS, start > 0 && r.EndNS > start
}
