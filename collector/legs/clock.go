package legs

// rebase moves everything that waits for time to pass along with a wall clock
// that was set back: else nothing would settle until it has caught up. A clock
// set forward only makes waits end early, once.
func (t *Table) rebase(nowNS int64) {
	back := nowNS - t.nowNS
	if t.nowNS == 0 || back >= 0 {
		return
	}
	move := func(times ...*int64) {
		for _, at := range times {
			if *at != 0 {
				*at += back
			}
		}
	}
	for _, l := range t.names {
		move(&l.usedNS, &l.lostNS, &l.unreadNS, &l.refusedNS, &l.out.GoneNS, &l.out.FirstSeenNS, &l.motion.movedNS)
		for _, s := range l.sockets {
			move(&s.sinceNS, &s.closingNS, &s.ackNS, &s.unreadNS)
		}
	}
}
