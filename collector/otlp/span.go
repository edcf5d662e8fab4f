package otlp

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"

	"grayfail/collector/engine"
	"grayfail/event"
)

// isRequest says that a span is of one inference call. Agents sum up what
// their calls used, and embeddings and tools generate nothing: their operation
// says so. vLLM and older instrumentation name no operation.
func isRequest(a *attributes) bool {
	switch a.text(keyOperation) {
	case "chat", "text_completion", "generate_content":
		return true
	case "":
	default:
		return false
	}
	if _, v := a.find(keysOutput()); v != nil {
		return true
	}
	return a.has(latencyPrefix)
}

// ahead is how far another host's clock may be before ours.
const ahead = int64(60e9)

var (
	errTimes  = errors.New("start_time_unix_nano and end_time_unix_nano are no span of time")
	errFuture = errors.New("end_time_unix_nano is more than a minute ahead of this host's clock")
)

// request makes a request of a span, or says why it cannot be one.
func request(span *trace.Span, a *attributes, nowNS int64) (event.Request, error) {
	start, end := span.GetStartTimeUnixNano(), span.GetEndTimeUnixNano()
	if start == 0 || end < start || end > math.MaxInt64 {
		return event.Request{}, errTimes
	}
	if int64(end) > nowNS+ahead {
		return event.Request{}, errFuture
	}
	r := event.Request{
		ID: engine.CleanID(a.text(keysID()...)), Source: "otlp",
		Model:   engine.CleanName(a.text(keysModel()...), engine.MaxModel),
		StartNS: int64(start), EndNS: int64(end), Outcome: outcome(span, a),
	}
	if r.ID == "" {
		r.ID = hex.EncodeToString(span.GetSpanId())
	}
	if r.ID == "" {
		r.ID = "otlp-" + strconv.FormatInt(r.EndNS, 36)
	}
	if r.Model == "" {
		r.Model = "unknown"
	}
	r.PromptTokens, _ = a.tokens(keysInput())
	r.GeneratedTokens, _ = a.tokens(keysOutput())
	cached, cachedKnown := a.tokens(keysCached())
	r.CachedTokens = min(cached, r.PromptTokens)
	decode := firstToken(&r, a)
	choices := choices(a)
	if n := r.GeneratedTokens - choices; n > 0 && decode > 0 {
		r.DecodeRate = perSecond(n, decode) / float64(choices)
	}
	// Without a word about the cache a prompt's rate means nothing: engines
	// reuse prefixes silently.
	if prefill, ok := a.seconds(keyPrefill); ok && cachedKnown {
		r.PrefillRate = perSecond(r.FreshPromptTokens(), prefill)
	}
	if a.err != nil {
		return event.Request{}, a.err
	}
	return r, nil
}

// firstToken places the first token and returns for how long the rest were
// decoded, in seconds; 0 where that is not known: the time of the whole call
// over its tokens is no decode rate.
func firstToken(r *event.Request, a *attributes) (decode float64) {
	whole := float64(r.EndNS-r.StartNS) / 1e9
	first, ok := a.seconds(keysFirst()...)
	// Spans and latencies are taken by two clocks of one process.
	if ok && first > 0 && first <= whole*1.01+0.01 {
		r.FirstTokenNS = min(r.StartNS+int64(first*1e9), r.EndNS)
		decode = max(0, whole-first)
	}
	if engine, ok := a.seconds(keyDecode); ok && engine > 0 {
		decode = engine
		if r.FirstTokenNS == 0 && engine <= whole {
			r.FirstTokenNS = max(r.StartNS, r.EndNS-int64(engine*1e9))
		}
	}
	return decode
}

// choices is how many answers one call asked for. vLLM's spans are one each.
func choices(a *attributes) int {
	if a.has(latencyPrefix) {
		return 1
	}
	n, _ := a.number(keysChoices(), 1024)
	return max(1, int(n))
}

// maxRate is beyond any engine.
const maxRate = 1e6

func perSecond(n int, seconds float64) float64 {
	if n <= 0 || seconds <= 0 {
		return 0
	}
	if r := float64(n) / seconds; r <= maxRate {
		return r
	}
	return 0
}

// outcome: error.type tells more than the status; a client that left is no
// failure of the engine.
func outcome(span *trace.Span, a *attributes) event.Outcome {
	kind := a.text(keyErrorType)
	failed := span.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR
	switch {
	case kind == "" && !failed && a.finishedBy("abort"):
		return event.OutcomeCanceled
	case kind == "" && !failed && a.finishedBy("error"):
		return event.OutcomeError
	case kind == "" && !failed:
		return event.OutcomeOK
	case kind == "":
		kind = span.GetStatus().GetMessage()
	}
	kind = strings.ToLower(kind[:min(len(kind), 200)])
	for _, word := range []string{"cancel", "abort", "disconnect"} {
		if strings.Contains(kind, word) {
			return event.OutcomeCanceled
		}
	}
	for _, word := range []string{"timeout", "timed out", "deadline"} {
		if strings.Contains(kind, word) {
			return event.OutcomeTimeout
		}
	}
	switch kind {
	case "499":
		return event.OutcomeCanceled
	case "408", "504":
		return event.OutcomeTimeout
	}
	return event.OutcomeError
}

// name tells a rejected span's sender which one it was.
func name(span *trace.Span) string {
	label := engine.CleanName(span.GetName(), 64)
	return fmt.Sprintf("span %s %q", hex.EncodeToString(span.GetSpanId()[:min(len(span.GetSpanId()), 8)]), label)
}
