package detector

import "math"

// maxEventTime is the latest time that is kept: the year 2116.
const maxEventTime = int64(math.MaxInt64 / 2)

// ClockStep says that the clock of event time was moved by deltaNS while no
// time passed: it was set, or the host slept. Nothing ages by that. What waits
// is judged as it is; baselines and episodes move along; exchanges and readings
// of before lie on another line of time and are forgotten.
func (d *Detector) ClockStep(deltaNS int64) Output {
	nowNS := d.nowNS + deltaNS
	if d.nowNS == 0 || deltaNS == 0 || nowNS <= 0 || deltaNS > maxEventTime || nowNS > maxEventTime {
		return Output{}
	}
	out := d.Flush()
	d.stats.ClockSteps++
	d.nowNS = nowNS
	for _, l := range d.store.legs.all {
		l.leftRDMANS = shifted(l.leftRDMANS, deltaNS)
	}
	d.store.rebase(nowNS)
	d.store.legs.nowNS = nowNS
	d.drops.queues, d.drops.byDevice = nil, nil
	for _, p := range d.fabric.ports {
		p.steps = nil
	}
	d.queue.forgetPast()
	for _, m := range d.order {
		m.decode.shift(deltaNS)
		m.prefill.shift(deltaNS)
	}
	return out
}

// shifted moves a time; 0 stays "never".
func shifted(timeNS, deltaNS int64) int64 {
	if timeNS == 0 {
		return 0
	}
	return min(max(1, timeNS+deltaNS), maxEventTime)
}

func (s *series) shift(deltaNS int64) {
	move := func(t *int64) { *t = shifted(*t, deltaNS) }
	for i := range s.prints {
		move(&s.prints[i].usedNS)
	}
	move(&s.adoptedNS)
	for _, st := range s.strata {
		move(&st.usedNS)
		for i := range st.window.len() {
			move(&st.window.at(i).endNS)
		}
		for i := range st.held {
			move(&st.held[i].endNS)
		}
	}
	for i := range s.learnedNS {
		move(&s.learnedNS[i])
	}
	t := &s.episode
	move(&t.lastEndNS)
	move(&t.current.StartNS)
	for i := range t.recent {
		move(&t.recent[i].startNS)
		move(&t.recent[i].endNS)
	}
}
