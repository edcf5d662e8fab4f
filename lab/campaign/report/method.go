package report

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"grayfail/event"
)

// Measure is the figure of a run that a campaign is about.
type Measure string

// Measures by the key of the run's record that holds them.
const (
	Decode  Measure = "decode_tokens_per_second"
	Prefill Measure = "prefill_tokens_per_second"
	Latency Measure = "latency_seconds"
)

// Measures lists every measure.
var Measures = []Measure{Decode, Prefill, Latency}

// Unit in which the measure is printed.
func (m Measure) Unit() string {
	if m == Latency {
		return "s"
	}
	return "tok/s"
}

// Of the run, if it counts and knows it. The rate of a failed request is none.
func (m Measure) Of(r *Run) (value float64, ok bool) {
	if !r.Counts() {
		return 0, false
	}
	p := r.Request.Latency
	switch {
	case m == Latency:
	case r.Failed():
		return 0, false
	case m == Prefill:
		p = r.Request.Prefill
	default:
		p = r.Request.Decode
	}
	if p == nil {
		return 0, false
	}
	return *p, true
}

// Method is what was fixed before the first run.
type Method struct {
	Name      string   `json:"name,omitempty"`
	Question  string   `json:"question,omitempty"`
	SpecHash  string   `json:"spec_hash"`
	OrderSeed uint64   `json:"order_seed"`
	Planned   int      `json:"planned,omitempty"`    // runs; 0 when not known
	Blocks    int      `json:"blocks,omitempty"`     // likewise
	Details   []string `json:"details,omitempty"`    // sentences about request, rule and injectors
	Measure   Measure  `json:"measure,omitempty"`    // Decode by default
	SlowBelow float64  `json:"slow_below,omitempty"` // of the block's control, 0 for no such rule
	// Conditions in the order in which they are reported; Control is the one by
	// which each block's rates are normalized, "" for none.
	Conditions []string    `json:"conditions"`
	Control    string      `json:"control,omitempty"`
	Criteria   []Criterion `json:"criteria,omitempty"`
}

// Evidence of a run that may go with its normalized rate.
type Evidence string

// Evidence by the key of the run's record that holds it.
const (
	DropFraction Evidence = "drop_fraction"
	Retransmits  Evidence = "retransmits"
	RTO          Evidence = "rto"
)

// Evidences lists every evidence.
var Evidences = []Evidence{DropFraction, Retransmits, RTO}

// Of the run, if it knows it.
func (e Evidence) Of(r *Run) (value float64, ok bool) {
	var count *uint64
	switch {
	case e == DropFraction && r.Qdisc != nil && r.Qdisc.DropFraction != nil:
		return *r.Qdisc.DropFraction, true
	case e == Retransmits && r.TCP != nil:
		count = r.TCP.Retransmits
	case e == RTO && r.TCP != nil:
		count = r.TCP.RTO
	}
	if count == nil {
		return 0, false
	}
	return float64(*count), true
}

// MinRequests is the fewest requests that a rank correlation is judged by.
const MinRequests = 5

// Criterion is a claim that was registered beforehand: inside one condition
// the rank correlation of an evidence with the normalized rate is at most, or at
// least, so much.
type Criterion struct {
	Condition string   `json:"condition"`
	Evidence  Evidence `json:"evidence"`
	Op        string   `json:"op"` // "<=" or ">="
	Rho       float64  `json:"rho"`
	// MinRequests below which it is not judged; 0 for MinRequests.
	MinRequests int `json:"min_requests,omitempty"`
}

func (c Criterion) String() string {
	return fmt.Sprintf("rho(%s, normalized rate) %s %.2f inside %s", c.Evidence, c.Op, c.Rho, c.Condition)
}

func (c Criterion) fewest() int { return max(c.MinRequests, MinRequests) }

// Check returns everything that makes the method unusable, or nil.
func (m *Method) Check() error {
	var problems []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	bad(m.SpecHash == "", "spec_hash: missing")
	bad(m.Measure != "" && !slices.Contains(Measures, m.Measure), "measure: %q, want one of %v", m.Measure, Measures)
	bad(math.IsNaN(m.SlowBelow) || m.SlowBelow < 0 || m.SlowBelow >= 1, "slow_below: %v, want at least 0 and below 1", m.SlowBelow)
	bad(m.Control != "" && !slices.Contains(m.Conditions, m.Control), "control: %q is not a condition", m.Control)
	for i, c := range m.Conditions {
		bad(slices.Index(m.Conditions, c) < i, "conditions: %q is there twice", c)
	}
	for i, c := range m.Criteria {
		bad(!slices.Contains(m.Conditions, c.Condition), "criteria %d: condition: %q is not one", i, c.Condition)
		bad(!slices.Contains(Evidences, c.Evidence), "criteria %d: evidence: %q, want one of %v", i, c.Evidence, Evidences)
		bad(c.Op != "<=" && c.Op != ">=", "criteria %d: op: %q, want <= or >=", i, c.Op)
		bad(!(math.Abs(c.Rho) <= 1), "criteria %d: rho: %v is not between -1 and 1", i, c.Rho)
	}
	return errors.Join(problems...)
}

// fast says that the exporter judged the request and did not find it slow.
func fast(r *Run) bool {
	return !r.Slow() && r.Request != nil && r.Request.Verdict == event.VerdictOK
}
