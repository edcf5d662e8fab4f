package detector

import (
	"fmt"

	"grayfail/event"
)

// judge gives the rows of one request.
func (d *Detector) judge(r *event.Request, out *Output) {
	d.stats.Requests++
	if r.Outcome == event.OutcomeCanceled {
		d.stats.Canceled++
		return
	}
	inFlight := d.queue.concurrency(r)
	failed := (r.Outcome == event.OutcomeError || r.Outcome == event.OutcomeTimeout) && !r.ClientError()
	if r.ClientError() {
		d.stats.ClientErrors++
	}

	v, pre := decodeView(r, &d.cfg), prefillView(r, &d.cfg)
	learnable := r.Outcome == event.OutcomeOK && (v.judgeable() || pre.judgeable())
	m := d.model(r, learnable)
	if failed {
		v = failedView(r, &d.cfg)
	}
	var decode, prefill *series
	if m != nil {
		decode, prefill = &m.decode, &m.prefill
	}
	d.judgePhase(decode, &v, r, inFlight, failed, out)
	d.judgePhase(prefill, &pre, r, inFlight, false, out)
}

// judgePhase appends the row of one phase, learns from it and moves the
// episode on. s is nil for a model
// that nothing was learned of yet, or beyond the table's bound.
func (d *Detector) judgePhase(s *series, v *phaseView, r *event.Request, inFlight float64, failed bool, out *Output) {
	row := event.Row{
		ID: r.ID, Source: r.Source, Model: r.Model, Condition: r.Condition, Phase: v.phase, Outcome: r.Outcome,
		Verdict: event.VerdictUnknown, StartNS: v.startNS, EndNS: v.endNS,
	}
	var basis *stratum
	var baseline float64
	key := keyOf(v, inFlight)
	key.guessed = r.LowConfidence
	former := s.former(r)
	if s != nil {
		key.fingerprint = d.printOf(s, r, v.judgeable() && r.Outcome == event.OutcomeOK)
		s.expire(r.EndNS, &d.cfg)
		if !former {
			basis, baseline = s.basis(key, &d.cfg)
		}
	}
	if v.rate > 0 {
		row.Rate = d.slab.float(v.rate)
	}
	if v.judgeable() && baseline > 0 {
		row.Baseline = d.slab.float(baseline)
		row.R = d.slab.float(v.rate / baseline)
	}
	switch {
	case r.ClientError():
		row.Detail = "client_error"
	case failed, row.R != nil && *row.R < d.cfg.Threshold:
		row.Verdict, row.HTTP = event.VerdictSlow, r.HTTP
		d.explain(&row, s, v, basis, baseline)
	case v.tooShort:
		row.Detail = "too_short"
	case former:
		row.Detail = "before_adoption"
	case row.R != nil:
		row.Verdict = event.VerdictOK
	}
	if s != nil {
		if v.judgeable() && !former && row.Verdict != event.VerdictSlow && r.Outcome == event.OutcomeOK {
			d.accept(s, v, key, r.EndNS)
			if !s.suspicious {
				d.fabric.learn(v.startNS, v.endNS)
			}
		}
		if !r.ClientError() && !former { // else they would move an episode that is not theirs
			d.follow(s, &row, out)
		}
		if v.phase == event.PhaseDecode && row.R != nil {
			d.score(s, &row, r, out)
		}
	}
	out.Rows = append(out.Rows, row)
}

// explain fills in where the time of a slow phase went, and why.
func (d *Detector) explain(row *event.Row, s *series, v *phaseView, basis *stratum, baseline float64) {
	var l ledger
	if v.endNS > v.startNS && basis != nil && v.seconds > 0 {
		var refs legReferences // of a parent that made room
		if parent := s.find(basis.key.parent()); parent != nil {
			refs = parent.refs
		}
		l = settle(v, baseline, d.store.measure(v.startNS, v.endNS), &refs)
		row.ExcessMS, row.LocalMS, row.LegsMS = l.inMS()
	}
	f, found := d.deadPath(row, v, &l)
	if !found {
		f, found = d.fallback(v, &l, basis)
	}
	if !found {
		f, found = d.overRDMA(row, v, &l)
	}
	switch {
	case found:
	case basis == nil:
		f = unattributed("no baseline to tell the lost time by")
	case row.R != nil && *row.R >= d.cfg.Threshold:
		f = unattributed("%s at %.2f of the usual rate: it was not the time", row.Outcome, *row.R)
	case v.endNS == 0:
		f = unattributed("the request does not say when this phase was")
	default:
		f = d.blind(explain(&l, d.suspects(&l, v), &d.cfg.Cause))
	}
	if s != nil {
		f = s.weigh(f)
	}
	row.Cause, row.Leg, row.Detail = f.cause, f.leg, f.detail
}

// suspects are the legs with at least ExamineShare of the excess, with what
// their exchanges say.
func (d *Detector) suspects(l *ledger, v *phaseView) []suspectLeg {
	var out []suspectLeg
	for i := range l.terms {
		t := &l.terms[i]
		share := l.share(t)
		if share < d.cfg.Cause.ExamineShare {
			break
		}
		says := d.store.hear(t.leg, v.startNS, v.endNS)
		if t.leg.device != "" {
			_, says.qdiscDrops, _ = d.drops.during(t.leg.netns, t.leg.device, v.startNS, v.endNS)
		}
		out = append(out, suspectLeg{term: t, share: share, says: says})
	}
	return out
}

// connectSlackNS is how long after a connection failed the request may end.
const connectSlackNS = int64(5e9)

// repeatedFailures of connections make a path dead though the request was
// answered: a single one is what a restart, or loss, leaves.
const repeatedFailures = 2

// deadPath: connections to the peer fail, or an exchange stays open past its
// limit, on one leg only.
func (d *Detector) deadPath(row *event.Row, v *phaseView, l *ledger) (finding, bool) {
	if v.endNS == 0 {
		return finding{}, false
	}
	var dead []*leg
	var detail string
	answered := row.Outcome == event.OutcomeOK
	for _, leg := range d.store.legs.all {
		failures := leg.failed.count(v.startNS-connectSlackNS, v.endNS+connectSlackNS)
		hung := leg.turns.hung(v.startNS, v.endNS, int64(d.cfg.Cause.DeadAfter))
		if failures == 0 && hung == 0 || answered && hung == 0 && failures < repeatedFailures {
			continue
		}
		if answered && !d.deadlyLate(leg, l, v, hung > 0) {
			continue
		}
		dead = append(dead, leg)
		detail = fmt.Sprintf("an exchange is open for %.1f s without an answer", float64(hung)/1e9)
		if failures > 0 {
			detail = fmt.Sprintf("%d connections failed", failures)
		}
	}
	switch len(dead) {
	case 0:
		return finding{}, false
	case 1:
		if dead[0].collective {
			return finding{}, false
		}
		return finding{cause: event.CauseDeadPath, leg: dead[0].name, detail: detail}, true
	}
	return finding{cause: event.CauseCommon, detail: fmt.Sprintf("%d legs are dead, the last one: %s", len(dead), detail)}, true
}

// deadlyLate: a dead path that did not stop the request holds a good part of
// its excess, and loss that was seen does not explain it: then connections fail
// for that reason too.
func (d *Detector) deadlyLate(leg *leg, l *ledger, v *phaseView, hung bool) bool {
	for _, s := range d.suspects(l, v) {
		if s.leg == leg {
			return hung || !s.says.hard() || judgeLeg(&s, &d.cfg.Cause).cause != event.CauseLoss
		}
	}
	return false
}

// fallback: the leg with most of the excess left RDMA, and the baseline is
// from before that.
func (d *Detector) fallback(v *phaseView, l *ledger, basis *stratum) (finding, bool) {
	if basis == nil || len(l.terms) == 0 {
		return finding{}, false
	}
	first := &l.terms[0]
	since := first.leg.leftRDMANS
	if since == 0 || since > v.endNS || l.share(first) < d.cfg.Cause.ExamineShare || first.leg.collective {
		return finding{}, false
	}
	learned := 0
	for i := range basis.window.len() {
		if basis.window.at(i).endNS > since {
			learned++
		}
	}
	if 2*learned > basis.window.len() {
		return finding{}, false
	}
	detail := fmt.Sprintf("left RDMA %.0f s before the end of the request; %.0f of %.0f ms", float64(v.endNS-since)/1e9, first.excess/1e6, l.excess/1e6)
	if first.leg.reason != "" {
		detail = first.leg.reason + ": " + detail
	}
	return finding{cause: event.CauseRDMAFallback, leg: first.leg.name, detail: detail}, true
}
