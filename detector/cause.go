package detector

import (
	"fmt"
	"strings"
	"time"

	"grayfail/event"
)

// finding is the answer to: why was this phase slow?
type finding struct {
	cause  event.Cause
	leg    string
	detail string
	// soft: other causes leave the same traces, so the phase alone does not
	// decide against its neighbours.
	soft bool
}

func unattributed(format string, args ...any) finding {
	return finding{cause: event.CauseUnattributed, detail: fmt.Sprintf(format, args...)}
}

// suspect is a leg with enough of the excess for its witnesses to be heard.
type suspectLeg struct {
	*term
	share   float64
	says    testimony
	verdict finding // without a name; CauseNone when the witnesses fit nothing
}

// explain names the cause of a slow phase, or says why it does not. suspects
// are the legs with at least ExamineShare of the excess, largest first.
func explain(l *ledger, suspects []suspectLeg, c *CauseConfig) finding {
	if l.excess <= 0 {
		return unattributed("no lost time by the baseline")
	}
	if !l.known {
		return unattributed("no accepted request has shown exchanges: nothing to compare with")
	}
	if f, missing := exchangesMissing(l); missing {
		return f
	}
	local := l.local / l.excess
	if local >= c.LocalShare {
		return finding{cause: event.CauseLocal, detail: fmt.Sprintf("%.0f of %.0f ms on no leg", l.local/1e6, l.excess/1e6)}
	}
	if len(suspects) == 0 {
		return unattributed("no leg holds %.0f%% of %.0f ms (local %.0f%%)", c.ExamineShare*100, l.excess/1e6, local*100)
	}
	for i := range suspects {
		suspects[i].verdict = judgeLeg(&suspects[i], c)
	}
	first := &suspects[0]
	if f, common := commonCause(l, suspects, c); common {
		return f
	}
	switch {
	case first.leg.collective:
		return unattributed("the excess is on legs beyond the table's bound")
	case first.verdict.cause == event.CauseNone:
		return unattributed("%s holds %.0f%%, but its witnesses do not fit one cause: %s", first.leg.name, first.share*100, first.says.summary())
	case first.verdict.soft && first.says.turns < fewTurns:
		// A short prompt is one exchange on each leg: load, a busy peer and a
		// lost packet look alike in it.
		return unattributed("%s holds %.0f%%, like %s, but %d exchanges are too few to tell: %s",
			first.leg.name, first.share*100, first.verdict.cause, first.says.turns, first.says.summary())
	case first.verdict.cause == event.CausePeerHost && first.share < c.NameShare:
		return unattributed("%s holds only %.0f%%: too little to call its host slow", first.leg.name, first.share*100)
	}
	f := first.verdict
	f.leg = first.leg.name
	return f
}

// exchangesMissing: accepted requests spend a good part of their time in
// exchanges; when nearly none were seen the data is missing, not the load.
func exchangesMissing(l *ledger) (finding, bool) {
	var base, seen float64
	for i := range l.terms {
		base += l.terms[i].base
		seen += l.terms[i].base + l.terms[i].excess
	}
	if seen < base/4 {
		return unattributed("exchanges are missing: %.1f ms seen where accepted requests have %.1f ms", seen/1e6, base/1e6), true
	}
	return finding{}, false
}

// commonCause: a second leg is late too, or everything is by a like factor.
// Then no path is to blame, unless only the first leg shows a fault of a path
// and it holds half of the excess.
func commonCause(l *ledger, suspects []suspectLeg, c *CauseConfig) (finding, bool) {
	first := &suspects[0]
	isPath := func(f finding) bool { return f.cause == event.CauseLoss || f.cause == event.CauseDelay }
	onlyFirst := isPath(first.verdict) && first.share >= c.NameShare
	for i := range suspects[1:] {
		if isPath(suspects[1+i].verdict) {
			onlyFirst = false
		}
	}
	if onlyFirst {
		return finding{}, false
	}
	for i := range l.terms[1:] {
		second := &l.terms[1+i]
		if second.excess >= c.SecondShare*first.excess {
			return finding{cause: event.CauseCommon, detail: fmt.Sprintf("%s holds %.0f ms and %s %.0f ms of %.0f ms",
				first.leg.name, first.excess/1e6, second.leg.name, second.excess/1e6, l.excess/1e6)}, true
		}
	}
	// Load on this host slows down whatever runs on it by a like factor,
	// however unequal the parts are.
	slowdown := growth(first.excess, first.base)
	others, othersBase := l.local, l.localBase
	for i := range l.terms[1:] {
		others += l.terms[1+i].excess
		othersBase += l.terms[1+i].base
	}
	rest := c.SecondShare
	if first.verdict.cause == event.CausePeerHost {
		rest = c.HostRest // the weakest of the names: a slow process looks like a loaded one
	}
	if g := growth(others, othersBase); slowdown > 0 && g >= rest*slowdown {
		return finding{cause: event.CauseCommon, detail: fmt.Sprintf("%s took %.1f and all else %.1f times as long as usual",
			first.leg.name, 1+slowdown, 1+g)}, true
	}
	return finding{}, false
}

// growth is the excess as a multiple of its base; 0 where there is no base.
func growth(excess, base float64) float64 {
	if base <= 0 {
		return 0
	}
	return excess / base
}

// judgeLeg turns the testimony of a leg into a cause.
func judgeLeg(s *suspectLeg, c *CauseConfig) finding {
	says, need := &s.says, c.LegShare*s.excess
	lost, silent, stalled := says.lost, says.silent+says.mute, says.host+says.gap
	if says.qdiscDrops > 0 {
		lost, silent = lost+silent, 0
	}
	ms := func(ns float64) float64 { return ns / 1e6 }
	switch {
	case lost+silent >= need && says.hard():
		return finding{cause: event.CauseLoss, detail: fmt.Sprintf("%.0f of %.0f ms in %d exchanges with loss: %s",
			ms(lost+silent), ms(s.excess), says.lostTurns+says.silentTurns+says.muteTurns, says.summary())}
	case silent >= need/2 && silent+stalled >= need && stalled >= need/2:
		// Long silences and shorter stalls of the same process, and no segment
		// was seen lost: which of them prevails decides, and half of either
		// decides nothing.
		if stalled < silent && silent >= need {
			return finding{}
		}
		return finding{cause: event.CausePeerHost, soft: true, detail: fmt.Sprintf("%.0f of %.0f ms: %s", ms(silent+stalled), ms(s.excess), says.summary())}
	case silent >= need:
		return finding{cause: event.CauseLoss, soft: true, detail: fmt.Sprintf("loss_or_stalled_peer: %.0f of %.0f ms in %d silences of %s and more, longest gap %s",
			ms(silent), ms(s.excess), says.silentTurns+says.muteTurns, c.RTOGap, time.Duration(says.maxGap).Round(time.Millisecond))}
	case says.acked >= need && says.late >= says.host && (says.trips >= need || says.late >= need && says.turns >= fewTurns):
		return finding{cause: event.CauseDelay, detail: fmt.Sprintf("%.0f of %.0f ms: requests ACKed late by %s, %d of %d exchanges",
			ms(max(says.late, says.acked)), ms(s.excess), time.Duration(says.acked/float64(max(1, says.turns))).Round(10*time.Microsecond), says.lateTurns, says.turns)}
	case says.turns >= fewTurns && says.even+says.gap >= need && (says.paced >= need || says.even >= need && says.paced >= need/2):
		// Every reply took its time, so it is no process that stalls now and then.
		return finding{cause: event.CauseDelay, detail: fmt.Sprintf("rate_limit: %.0f of %.0f ms in %d replies that came evenly slow, nothing lost",
			ms(says.even+says.gap), ms(s.excess), says.evenTurns+says.gapTurns)}
	case stalled >= need && lost+silent < c.ExamineShare*s.excess:
		return finding{cause: event.CausePeerHost, soft: true, detail: fmt.Sprintf("%.0f of %.0f ms in %d exchanges ACKed early and answered late or with one gap, %d tail probes answered by DSACKs",
			ms(stalled), ms(s.excess), says.hostTurns+says.gapTurns, says.probes)}
	}
	return finding{}
}

// summary lists the evidence in numbers.
func (t *testimony) summary() string {
	var parts []string
	add := func(n int, format string, args ...any) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(t.outOfOrder, "%d segments out of order", t.outOfOrder)
	add(t.resent, "%d retransmits beyond DSACKs", t.resent)
	add(t.timeouts, "%d exchanges with RTO or fast retransmits", t.timeouts)
	add(int(min(t.qdiscDrops, 1<<31)), "%d drops by its device's queue", t.qdiscDrops)
	add(t.silentTurns, "%d long silences, %.0f ms", t.silentTurns, t.silent/1e6)
	add(t.muteTurns, "%d first bytes late by a timeout, %.0f ms", t.muteTurns, t.mute/1e6)
	add(t.lateTurns, "%d ACKed late, %.0f ms", t.lateTurns, t.late/1e6)
	add(t.evenTurns, "%d evenly slow, %.0f ms", t.evenTurns, t.even/1e6)
	add(t.hostTurns, "%d answered late, %.0f ms", t.hostTurns, t.host/1e6)
	add(t.gapTurns, "%d with one gap, %.0f ms", t.gapTurns, t.gap/1e6)
	if t.maxGap > 0 {
		parts = append(parts, fmt.Sprintf("longest gap %.0f ms", float64(t.maxGap)/1e6))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
