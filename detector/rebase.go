package detector

// maxStepBackNS is the largest step back of the clock that is waited out: event
// time stands still until the clock is where it was. Beyond it the clock was
// wrong before, and everything is moved to the new one.
const maxStepBackNS = int64(60e9)

// maxEventAheadNS is how far from now an event may be. A pipeline that was held
// up may give events before it moves the clock; an hour no pipeline is.
const maxEventAheadNS = int64(3600e9)

// ahead says that an event is from a future that is not to come. One such would
// stay the newest for ever, and hide all that come after it.
func (d *Detector) ahead(timeNS int64) bool {
	if d.nowNS == 0 || timeNS <= d.nowNS+maxEventAheadNS {
		return false
	}
	d.stats.EventsAhead++
	return true
}

// rebase goes back to nowNS. What waits is judged as it is, since its times say
// nothing by the new clock. Baselines, references and episodes stay; what lies
// on the line of time is forgotten: it would be in the future.
func (d *Detector) rebase(nowNS int64) Output {
	out := d.Flush()
	d.stats.Rebased++
	d.nowNS = nowNS
	d.store.rebase(nowNS)
	d.drops.queues, d.drops.byDevice = nil, nil
	d.fabric.ports = nil
	d.queue.forgetPast()
	for _, m := range d.order {
		m.decode.rebase(nowNS)
		m.prefill.rebase(nowNS)
	}
	return out
}

func (s *store) rebase(nowNS int64) {
	s.turns, s.foldedNS = 0, 0
	for _, l := range s.legs.all {
		l.turns, l.sums, l.resends, l.failed = turnRing{}, sumRing{}, resendRing{}, failureRing{}
		l.usedNS, l.leftRDMANS = nowNS, min(l.leftRDMANS, nowNS)
	}
}

func (s *series) rebase(nowNS int64) {
	for i := range s.prints {
		s.prints[i].usedNS = min(s.prints[i].usedNS, nowNS)
	}
	s.adoptedNS = min(s.adoptedNS, nowNS)
	for _, st := range s.strata {
		st.usedNS = min(st.usedNS, nowNS)
		for i := range st.window.len() {
			x := st.window.at(i)
			x.endNS = min(x.endNS, nowNS)
		}
		for i := range st.held {
			st.held[i].endNS = min(st.held[i].endNS, nowNS)
		}
	}
	for i := range s.learnedNS {
		s.learnedNS[i] = min(s.learnedNS[i], nowNS)
	}
	t := &s.episode
	t.lastEndNS, t.current.StartNS = min(t.lastEndNS, nowNS), min(t.current.StartNS, nowNS)
	for i := range t.recent {
		j := &t.recent[i]
		j.startNS, j.endNS = min(j.startNS, nowNS), min(j.endNS, nowNS)
	}
}
