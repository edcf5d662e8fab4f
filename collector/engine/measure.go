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
	if !o.fromTimings(r) {
		o.fromClock(r)
	}
	r.CachedTokens = min(r.CachedTokens, r.PromptTokens)
	if r.FirstTokenNS != 0 {
		r.FirstTokenNS = min(max(r.FirstTokenNS, r.StartNS), r.EndNS)
	}
}

// fromUsage takes the counts; without one for the reply, chunks are counted.
func (o *Observer) fromUsage(r *event.Request) {
	r.PromptTokens, r.CachedTokens = o.usage.prompt.n, o.usage.cached.n
	r.GeneratedTokens = o.usage.completion.n
	if !o.usage.completion.ok && o.deltas > 0 {
		r.GeneratedTokens, r.LowConfidence = o.deltas, true
	}
}

// fromTimings takes what the engine measured itself. Its own rates are left
// alone: what predicted_per_second means changed between builds, and is 0 for
// a one-token reply.
func (o *Observer) fromTimings(r *event.Request) bool {
	var all timings
	var longest *timings // fresh prompt: copies of it (n > 1) cost nothing
	for i := range o.perTurn {
		t := &o.perTurn[i]
		if !t.seen {
			continue
		}
		all.seen = true
		all.predicted.n += t.predicted.n
		all.predicted.ok = all.predicted.ok || t.predicted.ok
		all.predictedMS += t.predictedMS
		if longest == nil || t.prompt.n > longest.prompt.n {
			longest = t
		}
	}
	if !all.seen || !all.predicted.ok && !longest.prompt.ok {
		return false
	}
	if all.predicted.ok {
		r.GeneratedTokens, r.LowConfidence = all.predicted.n, false
	}
	if longest.prompt.ok {
		o.prompt(r, longest)
		r.PrefillRate = rate(longest.prompt.n, longest.promptMS)
	}
	if all.predicted.n > 1 {
		r.DecodeRate = rate(all.predicted.n, all.predictedMS)
	}
	if r.FirstTokenNS == 0 && all.predicted.n > 0 && o.firstByteNS != 0 {
		// Not streamed: the answer left when the last token was made.
		r.FirstTokenNS = o.firstByteNS - int64(all.predictedMS*1e6)
	}
	return true
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

// fromClock makes rates of counts and our own clock. Decode needs text that
// came at several times, and a client that took it; prefill needs to know
// what was cached: engines that do not say reuse prefixes silently.
func (o *Observer) fromClock(r *event.Request) {
	if o.firstNS == 0 {
		return
	}
	span := o.lastNS - o.firstNS
	later := r.GeneratedTokens - max(1, o.earlyTokens())
	if o.moments > 1 && later > 0 && o.blocked*5 <= span {
		r.DecodeRate = rate(later, float64(span)/1e6) / float64(o.Choices())
	}
	if o.usage.cached.ok && o.usage.prompt.ok {
		r.PrefillRate = rate(o.usage.prompt.n-o.usage.cached.n, float64(o.firstNS-o.call.StartNS)/1e6)
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
