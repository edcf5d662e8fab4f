package detector

import "grayfail/event"

// accept learns from a phase that was not slow: its rate, and what the legs
// took per token.
func (d *Detector) accept(s *series, v *phaseView, key stratumKey, endNS int64) {
	parent := d.stratum(s, key.parent())
	leaf := parent
	if key != key.parent() {
		leaf = d.stratum(s, key)
	}
	s.accept(sample{v.rate, endNS}, &d.cfg, parent, leaf)
	// What a leg takes in a regime that decays is not what is usual there: while
	// the anchor holds the baseline, the references wait with it.
	s.anchored = parent != nil && parent.anchored(&d.cfg)
	if parent == nil || s.suspicious || s.anchored || v.endNS <= v.startNS || v.tokens <= 0 {
		return
	}
	busy := d.store.measure(v.startNS, v.endNS)
	if len(busy) == 0 && parent.refs.requests == 0 {
		return
	}
	parent.refs.learn(busy, v.tokens)
	d.store.learn(busy, v.startNS, v.endNS)
}

// stratum finds or makes a stratum; nil beyond MaxStrata.
func (d *Detector) stratum(s *series, key stratumKey) *stratum {
	if st := s.find(key); st != nil {
		return st
	}
	if d.strata >= d.cfg.MaxStrata && !d.freeStratum() {
		d.stats.StrataOverflow++
		return nil
	}
	d.strata++
	if s.isNewRegime(key) {
		s.countAdoption(key.concurrency)
		d.stats.Adopted++
	}
	st := &stratum{key: key, window: window{max: d.cfg.Window}, usedNS: d.nowNS}
	s.strata = append(s.strata, st)
	return st
}

// follow moves the episode of the series on.
func (d *Detector) follow(s *series, row *event.Row, out *Output) {
	j := judged{
		decided: row.Verdict != event.VerdictUnknown, slow: row.Verdict == event.VerdictSlow,
		startNS: row.StartNS, endNS: row.EndNS, id: row.ID, leg: row.Leg, cause: row.Cause, excessMS: row.ExcessMS,
	}
	if j.slow {
		s.suspect()
	}
	switch s.episode.observe(j, &d.cfg) {
	case opened:
		s.freeze(&d.cfg)
		out.Opened = append(out.Opened, s.episode.snapshot())
	case closed:
		e := s.episode.snapshot()
		d.remember(e)
		out.Closed = append(out.Closed, e)
		s.release(&d.cfg)
	case calmed:
		if s.suspicious {
			s.release(&d.cfg)
		}
	}
}
