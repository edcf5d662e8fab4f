package detector

import (
	"math"
	"time"

	"grayfail/event"
)

// store keeps what is known of all legs: exchanges of the newest seconds one
// by one, older ones as sums.
type store struct {
	cfg   *Config
	legs  legTable
	turns int // kept one by one, over all legs
	// foldedNS: whatever was before it is in sums.
	foldedNS int64

	// calm: no series is suspicious. Exchanges that are folded before any
	// request could vouch for them are then taken as references.
	calm bool

	occupancy occupancy
	hearing   hearing
	busy      []legBusy

	lostTurns, lostSlots uint64
}

// add takes one exchange, in any order.
func (s *store) add(e *event.Exchange) {
	l := s.legs.get(e.Leg)
	if l == nil || e.SendNS <= 0 || e.SendNS > math.MaxInt64/2 || e.Duration < 0 || int64(e.Duration) > math.MaxInt64/4 {
		s.lostTurns++
		return
	}
	t := makeTurn(e)
	t.class = l.classOf(e.RequestBytes, e.ReplyBytes)
	removed, gone := l.turns.supersede(&t)
	s.turns -= removed
	if gone {
		return
	}
	if t.sendNS < s.foldedNS {
		s.addLate(l, &t)
		if t.endNS <= s.foldedNS {
			return
		}
	}
	if s.turns >= s.cfg.MaxRecords {
		s.makeRoom()
	}
	if l.turns.put(t) {
		s.turns++
	}
}

// addLate puts the part of an exchange that lies before foldedNS into sums. It
// takes what the other legs left of each slot.
func (s *store) addLate(l *leg, t *turn) {
	oldest := s.foldedNS - int64(s.cfg.SumSpan)
	from, to := max(t.sendNS, oldest), min(t.endNS, s.foldedNS)
	if i := l.turns.find(t); i >= 0 {
		from = max(from, min(l.turns.at(i).endNS, to)) // an earlier look was folded already
	}
	if from >= to {
		return
	}
	var says testimony
	s.hearing.alone(l, t, from, to, &s.cfg.Cause, &says)
	for index := from / slotNS; index*slotNS < to; index++ {
		start := index * slotNS
		length := float64(min(to, start+slotNS) - max(from, start))
		free := float64(slotNS)
		for _, other := range s.legs.all {
			if i := other.sums.find(index); i < len(other.sums.slots) && other.sums.slots[i].index == index {
				free -= float64(other.sums.slots[i].busy)
			}
		}
		sl := l.sums.slot(index)
		sl.busy += float32(max(0, min(length, free)))
		if start <= from {
			sl.add(&says)
		}
	}
}

// makeRoom folds the older half of the time that is kept one by one.
func (s *store) makeRoom() {
	oldest, newest := int64(math.MaxInt64), int64(0)
	fullest := s.legs.all[0]
	for _, l := range s.legs.all {
		if l.turns.n == 0 {
			continue
		}
		oldest = min(oldest, l.turns.at(0).sendNS)
		newest = max(newest, l.turns.at(l.turns.n-1).endNS)
		if l.turns.n > fullest.turns.n {
			fullest = l
		}
	}
	s.fold(oldest + (newest-oldest)/2)
	if s.turns >= s.cfg.MaxRecords { // all at one instant, or all still open
		n := max(1, fullest.turns.n/8)
		fullest.turns.dropOldest(n)
		s.turns -= n
		s.lostTurns += uint64(n)
	}
}

// age folds what is older than RecordSpan and forgets what is older than
// SumSpan.
func (s *store) age(nowNS int64) {
	target := nowNS - int64(s.cfg.Hold) - int64(s.cfg.RecordSpan)
	if target < s.foldedNS+int64(time.Second) {
		return
	}
	s.fold(target)
	// Half of MaxRecords in slots takes less memory than the records.
	most := max(64, s.cfg.MaxRecords/max(1, len(s.legs.all)))
	for _, l := range s.legs.all {
		s.lostSlots += uint64(l.sums.trim((target-int64(s.cfg.SumSpan))/slotNS, most))
	}
}

// fold turns exchanges before untilNS into sums, slot by slot.
func (s *store) fold(untilNS int64) {
	untilNS -= untilNS % slotNS
	for untilNS > s.foldedNS {
		next := s.nextBusy(untilNS)
		if next >= untilNS {
			break
		}
		from := max(s.foldedNS, next-next%slotNS)
		to := from - from%slotNS + slotNS
		s.occupancy.measure(s.legs.all, from, to)
		for _, b := range s.occupancy.busy {
			sl := b.leg.sums.slot(from / slotNS)
			sl.busy += float32(b.ns)
			if turns, quiet := b.leg.quiet(from, to, &s.cfg.Cause); quiet {
				sl.turns = saturate(sl.turns, turns)
			} else {
				says := s.hearing.hear(b.leg, from, to, &s.cfg.Cause)
				sl.add(&says)
			}
			if s.calm {
				s.learnClasses(b.leg, from, to)
			}
		}
		s.foldedNS = to
		s.drop()
	}
	s.foldedNS = max(s.foldedNS, untilNS)
	s.drop()
}

// nextBusy is when the first exchange that is not folded was sent.
func (s *store) nextBusy(limit int64) int64 {
	first := limit
	for _, l := range s.legs.all {
		if l.turns.n > 0 {
			first = min(first, max(s.foldedNS, l.turns.at(0).sendNS))
		}
	}
	return first
}

// drop forgets records that are folded entirely.
func (s *store) drop() {
	for _, l := range s.legs.all {
		n := 0
		for n < l.turns.n && l.turns.at(n).reachNS <= s.foldedNS {
			n++
		}
		if n > 0 {
			l.turns.dropOldest(n)
			s.turns -= n
		}
	}
}

// measure returns what each leg took of from..to; good until the next call.
func (s *store) measure(fromNS, toNS int64) []legBusy {
	s.occupancy.measure(s.legs.all, max(fromNS, s.foldedNS), toNS)
	if fromNS >= s.foldedNS {
		return s.occupancy.busy
	}
	s.busy = s.busy[:0]
	recent := s.occupancy.busy
	for _, l := range s.legs.all {
		b := legBusy{leg: l}
		if len(recent) > 0 && recent[0].leg == l {
			b, recent = recent[0], recent[1:]
		}
		l.sums.between(fromNS, min(toNS, s.foldedNS), func(sl *slot, part float64) {
			b.ns += float64(sl.busy) * part
			b.turns += int(sl.turns)
		})
		if b.turns > 0 || b.ns > 0 {
			s.busy = append(s.busy, b)
		}
	}
	return s.busy
}

// hear returns the testimony of a leg for from..to.
func (s *store) hear(l *leg, fromNS, toNS int64) testimony {
	says := s.hearing.hear(l, max(fromNS, s.foldedNS), toNS, &s.cfg.Cause)
	if fromNS < s.foldedNS {
		l.sums.between(fromNS, min(toNS, s.foldedNS), func(sl *slot, part float64) { sl.testify(&says, part) })
	}
	return says
}

// learn lets the classes see the exchanges of an accepted phase.
func (s *store) learn(busy []legBusy, fromNS, toNS int64) {
	for _, b := range busy {
		s.learnClasses(b.leg, fromNS, toNS)
	}
}

func (s *store) learnClasses(l *leg, fromNS, toNS int64) {
	i0, i1 := l.turns.window(fromNS, toNS)
	for i := i0; i < i1; i++ {
		t := l.turns.at(i)
		if t.learned || t.open || t.sendNS < fromNS || int(t.class) >= len(l.classes) {
			continue
		}
		t.learned = true
		l.classes[t.class].learn(t)
	}
}
