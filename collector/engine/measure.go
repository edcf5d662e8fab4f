package engine

import "grayfail/event"

// maxRate is beyond any engine: a span rounded to nearly nothing (llama.cpp
// writes predicted_ms 0.001 for a one-token reply) is no measurement.
const maxRate = 1e6

// measure fills in tokens, first token and rates, by what deserves the most
// trust: the engine's timings, then its usage with our clock, then counted
// chunks, marked.
func (o *Observer) measure(r *event.Request) {
	r.FirstTokenNS = o.firstNS
	o.fromUsage(r)
	decode, prefill := o.fromTimings(r)
	if !decode {
		o.decodeByClock(r)
	}
	if !prefill {
		o.prefillByClock(r)
	}
	r.CachedTokens = min(r.CachedTokens, r.PromptTokens)
	if r.FirstTokenNS != 0 {
		r.FirstTokenNS = min(max(r.FirstTokenNS, r.StartNS), r.EndNS)
	}
}

// fromUsage takes the counts; without one for the reply, chunks are counted.
func (o *Observer) fromUsage(r *event.Request) {
	r.PromptTokens, r.CachedTokens = o.usage.prompt.n, o.usage.cached.n
	if o.usage.read.ok {
		r.PromptTokens += o.usage.read.n + o.usage.written.n
		r.CachedTokens = o.usage.read.n
	}
	r.GeneratedTokens = o.usage.completion.n
	if !o.usage.completion.ok && o.deltas > 0 {
		r.GeneratedTokens, r.LowConfidence = o.deltas, true
	}
}

// fromTimings takes what the engine measured itself, and says of which phases.
// Where it gives durations, its own rates are left alone: what llama.cpp's
// predicted_per_second means changed between builds, and is 0 for a one-token
// reply.
func (o *Observer) fromTimings(r *event.Request) (decode, prefill bool) {
	var predicted, first int
	var ms, mean float64
	longest := -1 // fresh prompt: copies of it (n > 1) cost nothing
	for i := range o.perTurn {
		t := &o.perTurn[i]
		if t.predicted.ok {
			decode = true
			predicted += t.predicted.n
			ms += t.predictedMS
		}
		mean = max(mean, t.rate)
		if t.prompt.ok && t.prompt.n > first {
			first, longest = t.prompt.n, i
		}
	}
	switch {
	case decode:
		r.GeneratedTokens, r.LowConfidence = predicted, false
		if predicted > 1 {
			r.DecodeRate = rate(predicted, ms)
		}
		if r.FirstTokenNS == 0 && predicted > 0 && o.firstByteNS != 0 {
			// Not streamed: the answer left when the last token was made.
			r.FirstTokenNS = o.firstByteNS - int64(ms*1e6)
		}
	case mean > 0 && mean <= maxRate:
		decode = true
		if r.GeneratedTokens > 1 {
			r.DecodeRate = mean
		}
	}
	if longest >= 0 {
		o.prompt(r, &o.perTurn[longest])
		r.PrefillRate = rate(first, o.perTurn[longest].promptMS)
	}
	return decode, longest >= 0
}

// prompt sets the whole prompt and its cached part. prompt_n is only the
// fresh part; builds before cache_n (2025) tell the whole elsewhere.
func (o *Observer) prompt(r *event.Request, t *timings) {
	whole := o.usage.prompt
	switch {
	case t.cached.ok:
		r.PromptTokens, r.CachedTokens = t.cached.n+t.prompt.n, t.cached.n
	case whole.ok && whole.n >= t.prompt.n:
		r.PromptTokens, r.CachedTokens = whole.n, whole.n-t.prompt.n
	default:
		r.PromptTokens, r.CachedTokens = t.prompt.n, 0
	}
}

// decodeByClock makes a rate of a count and our own clock. The text must have
// come at several times, and the client must have taken it.
func (o *Observer) decodeByClock(r *event.Request) {
	span := o.lastNS - o.firstNS
	later := r.GeneratedTokens - o.earlyTokens()
	if o.blocked*5 <= span {
		r.DecodeRate = rate(later, float64(span)/1e6) / float64(o.Choices())
	}
}

// prefillByClock needs to know what was cached: engines that do not say reuse
// prefixes silently.
func (o *Observer) prefillByClock(r *event.Request) {
	if o.firstNS != 0 && (o.usage.cached.ok || o.usage.read.ok) {
		r.PrefillRate = rate(r.FreshPromptTokens(), float64(o.firstNS-o.call.StartNS)/1e6)
	}
}

// earlyTokens is how many tokens the first chunk held, where the engine
// counts along (usage in each chunk, tokens_predicted).
func (o *Observer) earlyTokens() int {
	if o.early.ok && o.usage.completion.ok && o.early.n < o.usage.completion.n {
		return o.early.n
	}
	return 1
}

// rate in tokens per second; 0 where there is none.
func rate(n int, ms float64) float64 {
	if n <= 0 || ms <= 0 {
		return 0
	}
	if r := float64(n) / ms * 1000; r <= maxRate {
		return r
	}
	return 0
}
