package event

import "encoding/json"

// Verdict of one phase of one request.
type Verdict string

const (
	VerdictOK      Verdict = "ok"
	VerdictSlow    Verdict = "slow"
	VerdictUnknown Verdict = "unknown"
)

// Verdicts lists every verdict, so that metrics can be initialised.
var Verdicts = []Verdict{VerdictOK, VerdictSlow, VerdictUnknown}

// Cause of a slow phase or an episode.
type Cause string

const (
	CauseNone         Cause = ""
	CauseLoss         Cause = "loss"
	CauseDelay        Cause = "delay"
	CausePeerHost     Cause = "peer_host"
	CauseRDMAFallback Cause = "rdma_fallback"
	CauseDeadPath     Cause = "dead_path"
	CauseCommon       Cause = "common_cause"
	CauseLocal        Cause = "local"
	CauseUnattributed Cause = "unattributed"
)

// Causes lists every cause a slow row can carry.
var Causes = []Cause{
	CauseLoss, CauseDelay, CausePeerHost, CauseRDMAFallback, CauseDeadPath,
	CauseCommon, CauseLocal, CauseUnattributed,
}

// NamesPath says whether a row of this cause carries a leg: local,
// common_cause and unattributed never do.
func (c Cause) NamesPath() bool {
	switch c {
	case CauseNone, CauseCommon, CauseLocal, CauseUnattributed:
		return false
	}
	return true
}

// Row is the verdict on one phase of one request: the row of replay and of
// /api/v1/requests. Pointers are nil where a value is not known.
type Row struct {
	ID        string   `json:"id"`
	Source    string   `json:"source"`
	Model     string   `json:"model"`
	Condition string   `json:"condition"`
	Phase     Phase    `json:"phase"`
	Outcome   Outcome  `json:"outcome"`
	Rate      *float64 `json:"rate"`     // tokens per second
	Baseline  *float64 `json:"baseline"` // tokens per second
	R         *float64 `json:"r"`        // rate / baseline
	Verdict   Verdict  `json:"verdict"`
	// ExcessMS = sum of LegsMS + LocalMS, exactly; all zero unless slow.
	ExcessMS float64  `json:"excess_ms"`
	LegsMS   LegTimes `json:"legs_ms"`
	LocalMS  float64  `json:"local_ms"`
	Cause    Cause    `json:"cause"`
	Detail   string   `json:"detail"`
	Leg      string   `json:"leg"`

	// StartNS and EndNS bound the phase; not part of the JSON contract's
	// minimum, but an operator wants to know when.
	StartNS int64 `json:"start_ns,omitempty"`
	EndNS   int64 `json:"end_ns,omitempty"`
	// HTTP is where the time of a slow request's call to its upstream went;
	// nil when not slow or not known.
	HTTP *HTTPStages `json:"http,omitempty"`
}

// LegTimes are milliseconds by leg. Nil, which most rows have, is written as an
// empty object.
type LegTimes map[string]float64

// MarshalJSON never writes null.
func (t LegTimes) MarshalJSON() ([]byte, error) {
	if t == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(map[string]float64(t))
}

// Episode is a run of slow verdicts of one model and phase.
type Episode struct {
	// ID stays the same from the opening on, across restarts and clock steps.
	ID         string   `json:"id,omitempty"`
	StartNS    int64    `json:"start_ns"`
	EndNS      int64    `json:"end_ns"` // 0 while it is open
	Source     string   `json:"source,omitempty"`
	Model      string   `json:"model"`
	Phase      Phase    `json:"phase"`
	Cause      Cause    `json:"cause"`
	Leg        string   `json:"leg"`
	Slow       int      `json:"slow"`
	Requests   int      `json:"requests"`
	RequestIDs []string `json:"request_ids"` // the slow ones
}

// BaselineState of a stratum.
type BaselineState string

const (
	BaselineWarming BaselineState = "warming"
	BaselineReady   BaselineState = "ready"
	BaselineFrozen  BaselineState = "frozen"
	BaselineStale   BaselineState = "stale"
)

// BaselineStates lists every state, so that metrics can be initialised.
var BaselineStates = []BaselineState{BaselineWarming, BaselineReady, BaselineFrozen, BaselineStale}

// Baseline is one stratum's state as exported.
type Baseline struct {
	Source      string        `json:"source"`
	Model       string        `json:"model"`
	Phase       Phase         `json:"phase"`
	Concurrency string        `json:"concurrency"` // bucket: "1", "2", "3-4", ...
	Rate        float64       `json:"tokens_per_second"`
	Anchor      float64       `json:"anchor_tokens_per_second"`
	Samples     int           `json:"samples"`
	LogSigma    float64       `json:"log_sigma"`
	State       BaselineState `json:"state"`
	Adopted     uint64        `json:"adopted"`
	Requests    uint64        `json:"requests"` // judged or learned, to find the busiest
	// Eroded: the median has decayed below 0.8 of the anchor, too slowly for any
	// request to be slow. Adopt it, or find what eats it.
	Eroded bool `json:"eroded"`
	// Fingerprint of the engine that the baseline is of; "" where the source
	// names none.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// Correlation is the rank statistic beside the ledger: "associated with".
type Correlation struct {
	Condition string  `json:"condition"`
	Model     string  `json:"model,omitempty"`
	Leg       string  `json:"leg"`
	Evidence  string  `json:"evidence"` // drop_fraction or retransmits
	N         int     `json:"n"`
	Rho       float64 `json:"rho"`
	PValue    float64 `json:"p_value"`
	// FamilyPValue is that of the largest correlation over all legs and kinds
	// of evidence (max-T), by the same permutations: of many legs one always
	// looks associated. 0 where it was not computed.
	FamilyPValue float64 `json:"family_p_value,omitempty"`
}
