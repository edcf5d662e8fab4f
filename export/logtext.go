package export

import (
	"fmt"
	"strings"

	"github.com/rs/zerolog"

	"grayfail/event"
)

// slowText says who ate how much: "slow: rpc-b ate 1.38 s of 1.39 s (loss: ...)".
func slowText(r event.Row) string {
	var b strings.Builder
	b.WriteString("slow: ")
	if r.Outcome == event.OutcomeError || r.Outcome == event.OutcomeTimeout {
		fmt.Fprintf(&b, "failed with %s: ", r.Outcome)
	}
	excess := seconds(r.ExcessMS / 1e3)
	switch {
	case r.Leg != "":
		fmt.Fprintf(&b, "%s ate %s of %s", label(r.Leg), seconds(r.LegsMS[r.Leg]/1e3), excess)
	case r.Cause == event.CauseLocal:
		fmt.Fprintf(&b, "this host ate %s of %s", seconds(r.LocalMS/1e3), excess)
	case r.Cause == event.CauseCommon:
		fmt.Fprintf(&b, "%s lost on several legs at once", excess)
	default:
		fmt.Fprintf(&b, "%s lost, no leg named", excess)
	}
	fmt.Fprintf(&b, " (%s", label(string(r.Cause)))
	if r.Detail != "" {
		fmt.Fprintf(&b, ": %s", sentence(r.Detail))
	}
	b.WriteByte(')')
	return b.String()
}

// okText says that it is over, and what it was.
func okText(r event.Row, was string) string {
	if r.Rate == nil || r.R == nil {
		return "ok again, was slow by " + was
	}
	return fmt.Sprintf("ok again: %.4g tokens/s, %.2f of the baseline, was slow by %s", *r.Rate, *r.R, was)
}

// blame gives the cause and the leg where there is one: "rpc-b (loss)".
func blame(c event.Cause, leg string) string {
	if leg == "" {
		return label(string(c))
	}
	return fmt.Sprintf("%s (%s)", label(leg), label(string(c)))
}

// seconds gives three digits or so.
func seconds(s float64) string {
	switch {
	case s >= 100:
		return fmt.Sprintf("%.0f s", s)
	case s >= 10:
		return fmt.Sprintf("%.1f s", s)
	case s >= 1:
		return fmt.Sprintf("%.2f s", s)
	}
	return fmt.Sprintf("%.3f s", s)
}

// rowFields are the fields of every line about a request. What is not known
// has no field.
func rowFields(e *zerolog.Event, r event.Row) *zerolog.Event {
	e = e.Str("source", label(r.Source)).Str("model", label(r.Model)).Str("phase", label(string(r.Phase))).
		Str("request_id", label(r.ID)).Str("outcome", label(string(r.Outcome)))
	for _, f := range []struct {
		name string
		v    *float64
	}{{"rate", r.Rate}, {"baseline", r.Baseline}, {"r", r.R}} {
		if f.v != nil {
			e = e.Float64(f.name, *f.v)
		}
	}
	if r.Verdict != event.VerdictSlow {
		return e
	}
	e = e.Str("leg", label(r.Leg)).Str("cause", label(string(r.Cause))).
		Str("detail", sentence(r.Detail)).
		Float64("excess_seconds", r.ExcessMS/1e3).Float64("local_seconds", r.LocalMS/1e3)
	if r.HTTP != nil {
		e = e.Interface("http", r.HTTP)
	}
	if r.Leg != "" {
		e = e.Float64("leg_seconds", r.LegsMS[r.Leg]/1e3)
	}
	return e
}

func rateText(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.4g", *v)
}
