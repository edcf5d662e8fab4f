package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"grayfail/event"
)

// RunVersion of the lines that this package reads.
const RunVersion = 1

// maxFigure of any rate or time: what is above it is a mistake of the writer,
// and would make sums infinite.
const maxFigure = 1e9

// VerdictFailed is the verdict on a request that gave no whole answer: there is
// no rate to judge.
const VerdictFailed event.Verdict = "failed"

// Run is one line of runs.jsonl: one request under one condition. A fact that
// was not measured is an absent key and a nil pointer, never zero.
type Run struct {
	Version   int       `json:"version"`
	SpecHash  string    `json:"spec_hash"`
	Run       int       `json:"run"`      // place in the plan
	Block     int       `json:"block"`    // conditions are shuffled inside a block
	Position  int       `json:"position"` // inside the block
	Condition string    `json:"condition"`
	Repeat    int       `json:"repeat"`
	Stream    int       `json:"stream"` // which of the requests in flight at once
	Started   time.Time `json:"started"`
	Ended     time.Time `json:"ended"`
	// Valid is false where the injector did not act or the run was cut short:
	// such a run is kept with its reason and is part of no figure.
	Valid         bool   `json:"valid"`
	InvalidReason string `json:"invalid_reason"`

	Injector *Injector `json:"injector,omitempty"`
	Request  *Request  `json:"request,omitempty"`
	Qdisc    *Qdisc    `json:"qdisc,omitempty"`
	TCP      *TCP      `json:"tcp,omitempty"`
}

// Injector is the proof that the condition was in force.
type Injector struct {
	Kind          string   `json:"kind"`
	Acted         bool     `json:"acted"`
	CounterBefore *float64 `json:"counter_before,omitempty"`
	CounterAfter  *float64 `json:"counter_after,omitempty"`
	Unit          string   `json:"unit,omitempty"`
}

// Request is what the request came to, and the exporter's verdict on it.
type Request struct {
	Outcome    event.Outcome `json:"outcome"`
	ExitCode   *int          `json:"exit_code,omitempty"`
	HTTPStatus *int          `json:"http_status,omitempty"`
	Latency    *float64      `json:"latency_seconds,omitempty"`
	TTFT       *float64      `json:"ttft_seconds,omitempty"`
	Tokens     *int          `json:"output_tokens,omitempty"`
	Decode     *float64      `json:"decode_tokens_per_second,omitempty"`
	Prefill    *float64      `json:"prefill_tokens_per_second,omitempty"`
	Verdict    event.Verdict `json:"verdict,omitempty"`
	Relative   *float64      `json:"relative,omitempty"` // rate / the detector's baseline
	NamedLeg   string        `json:"named_leg,omitempty"`
	Cause      event.Cause   `json:"cause,omitempty"`
	Excess     *float64      `json:"excess_seconds,omitempty"`
}

// Qdisc is what the impaired device's queue did during the run.
type Qdisc struct {
	DropFraction *float64 `json:"drop_fraction,omitempty"`
	Drops        *uint64  `json:"drops,omitempty"`
	Packets      *uint64  `json:"packets,omitempty"`
}

// TCP is what the coordinator's kernel counted during the run.
type TCP struct {
	Retransmits *uint64 `json:"retransmits,omitempty"`
	RTO         *uint64 `json:"rto,omitempty"` // retransmission timeouts
}

// Failed says that the request gave no whole answer.
func (r *Run) Failed() bool {
	if r.Request == nil {
		return false
	}
	o := r.Request.Outcome
	return o == event.OutcomeError || o == event.OutcomeTimeout || r.Request.Verdict == VerdictFailed
}

// Slow says that the request was slower than the rule allows; one that failed
// was too.
func (r *Run) Slow() bool {
	return r.Failed() || r.Request != nil && r.Request.Verdict == event.VerdictSlow
}

// Counts says that the run is part of the figures. A request whose client left
// says nothing about the condition.
func (r *Run) Counts() bool {
	return r.Valid && r.Request != nil && r.Request.Outcome != event.OutcomeCanceled
}

var verdicts = append([]event.Verdict{"", VerdictFailed}, event.Verdicts...)

// Check returns everything that makes the run unusable, or nil.
func (r *Run) Check() error {
	var problems []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	if r.Version != RunVersion {
		return fmt.Errorf("version %d: this program reads version %d", r.Version, RunVersion)
	}
	bad(r.SpecHash == "", "spec_hash: missing")
	bad(r.Condition == "", "condition: missing")
	bad(r.Run < 0 || r.Block < 0 || r.Position < 0 || r.Repeat < 0 || r.Stream < 0, "run, block, position, repeat or stream: negative")
	bad(r.Started.IsZero(), "started: missing")
	bad(!r.Ended.IsZero() && r.Ended.Before(r.Started), "ended: before started")
	bad(r.Valid && r.InvalidReason != "", "invalid_reason: of a valid run")
	bad(!r.Valid && r.InvalidReason == "", "invalid_reason: missing of an invalid run")
	bad(r.Valid && r.Request == nil, "request: missing of a valid run")
	if r.Injector != nil {
		bad(r.Injector.Kind == "", "injector.kind: missing")
		bad(r.Valid && !r.Injector.Acted, "valid: although the injector did not act")
	}
	if q := r.Request; q != nil {
		bad(!slices.Contains(event.Outcomes, q.Outcome), "request.outcome: %q, want one of %v", q.Outcome, event.Outcomes)
		bad(!slices.Contains(verdicts, q.Verdict), "request.verdict: %q, want one of %v", q.Verdict, verdicts[1:])
		bad(q.Cause != "" && !slices.Contains(event.Causes, q.Cause), "request.cause: %q, want one of %v", q.Cause, event.Causes)
		bad(q.Tokens != nil && *q.Tokens < 0, "request.output_tokens: negative")
		for _, v := range []struct {
			name  string
			value *float64
		}{
			{"latency_seconds", q.Latency}, {"ttft_seconds", q.TTFT}, {"decode_tokens_per_second", q.Decode},
			{"prefill_tokens_per_second", q.Prefill}, {"relative", q.Relative},
		} {
			bad(v.value != nil && *v.value < 0, "request.%s: negative", v.name)
			bad(v.value != nil && *v.value > maxFigure, "request.%s: %v is no rate or time", v.name, *cmp.Or(v.value, new(float64)))
		}
	}
	if q := r.Qdisc; q != nil && q.DropFraction != nil {
		bad(*q.DropFraction < 0 || *q.DropFraction > 1, "qdisc.drop_fraction: %v is not between 0 and 1", *q.DropFraction)
	}
	return errors.Join(problems...)
}
