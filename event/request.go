package event

// Outcome of a request.
type Outcome string

const (
	OutcomeOK       Outcome = "ok"
	OutcomeError    Outcome = "error"
	OutcomeTimeout  Outcome = "timeout"
	OutcomeCanceled Outcome = "canceled" // the client left: no verdict
)

// Outcomes lists every outcome, so that metrics can be initialised.
var Outcomes = []Outcome{OutcomeOK, OutcomeError, OutcomeTimeout, OutcomeCanceled}

// Phase of a request: each has its own rate, baseline, verdict and ledger.
type Phase string

const (
	PhaseDecode  Phase = "decode"
	PhasePrefill Phase = "prefill"
)

// Phases in the order in which rows are reported.
var Phases = []Phase{PhaseDecode, PhasePrefill}

// Request is one completed inference call.
type Request struct {
	ID     string
	Source string // configured name, "push" or "otlp"
	Model  string
	// StartNS, FirstTokenNS and EndNS are Unix times; 0 means not known.
	StartNS, FirstTokenNS, EndNS int64
	// PromptTokens counts the whole prompt, CachedTokens the part of it that
	// was not computed; fresh = PromptTokens - CachedTokens.
	PromptTokens, CachedTokens, GeneratedTokens int
	// Rates in tokens per second as given by the source; 0 means not given.
	PrefillRate, DecodeRate float64
	Outcome                 Outcome
	// Concurrency is the time-weighted number of requests in flight at the
	// source, this one included; 0 means the source cannot tell.
	Concurrency float64
	// Condition labels a recorded experiment. The detector never reads it.
	Condition string
	// LowConfidence marks token counts guessed from stream chunks. Guessed and
	// counted rates are never compared with each other.
	LowConfidence bool
	// Fingerprint names what the engine runs, such as its build (OpenAI's
	// system_fingerprint); "" when the source does not say. Each has baselines
	// of its own.
	Fingerprint string
	// Status is the HTTP status of the answer; 0 when not known.
	Status int
	// HTTP is where the time of the call went, as the proxy saw it; nil when
	// not known. It is not part of recordings. Whoever has it only reads it.
	HTTP *HTTPStages
}

// ClientError says that the request failed by its own fault: an answer 4xx,
// but for the two that the server gives when it is too slow or too busy. It
// says nothing about any path.
func (r *Request) ClientError() bool {
	const timedOut, tooMany = 408, 429
	return r.Outcome == OutcomeError && r.Status >= 400 && r.Status < 500 && r.Status != timedOut && r.Status != tooMany
}

// FreshPromptTokens is the part of the prompt that had to be computed.
func (r *Request) FreshPromptTokens() int {
	return max(0, r.PromptTokens-r.CachedTokens)
}
