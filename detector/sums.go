package detector

import (
	"math"
	"sort"
)

// slotNS is the width of one sum.
const slotNS = int64(100e6)

// slot sums what one leg did in one stretch of slotNS: all that the ledger and
// the witnesses need of exchanges that are no longer kept one by one.
type slot struct {
	index                                            int64   // Unix time / slotNS
	busy                                             float32 // ns, shared with other legs as in occupancy
	lost, silent, mute, late, even, host, gap        float32
	acked, trips, paced                              float32
	maxGapMS                                         uint16
	turns, outOfOrder, resent                        uint16
	timeouts, probes                                 uint8
	lostN, silentN, muteN, lateN, evenN, hostN, gapN uint8
}

// add takes a testimony that falls into the slot.
func (s *slot) add(t *testimony) {
	s.lost += float32(t.lost)
	s.silent += float32(t.silent)
	s.mute += float32(t.mute)
	s.late += float32(t.late)
	s.even += float32(t.even)
	s.host += float32(t.host)
	s.gap += float32(t.gap)
	s.acked += float32(t.acked)
	s.trips += float32(t.trips)
	s.paced += float32(t.paced)
	s.maxGapMS = max(s.maxGapMS, uint16(min(t.maxGap/1e6, math.MaxUint16)))
	s.turns = saturate(s.turns, t.turns)
	s.outOfOrder = saturate(s.outOfOrder, t.outOfOrder)
	s.resent = saturate(s.resent, t.resent)
	s.timeouts = saturate(s.timeouts, t.timeouts)
	s.probes = saturate(s.probes, t.probes)
	s.lostN = saturate(s.lostN, t.lostTurns)
	s.silentN = saturate(s.silentN, t.silentTurns)
	s.muteN = saturate(s.muteN, t.muteTurns)
	s.lateN = saturate(s.lateN, t.lateTurns)
	s.evenN = saturate(s.evenN, t.evenTurns)
	s.hostN = saturate(s.hostN, t.hostTurns)
	s.gapN = saturate(s.gapN, t.gapTurns)
}

func saturate[T uint8 | uint16](have T, more int) T {
	if most := int(^T(0)); int(have)+more > most {
		return ^T(0)
	}
	return have + T(more)
}

// testify adds part of the slot to a testimony.
func (s *slot) testify(t *testimony, part float64) {
	t.lost += float64(s.lost) * part
	t.silent += float64(s.silent) * part
	t.mute += float64(s.mute) * part
	t.late += float64(s.late) * part
	t.even += float64(s.even) * part
	t.host += float64(s.host) * part
	t.gap += float64(s.gap) * part
	t.acked += float64(s.acked) * part
	t.trips += float64(s.trips) * part
	t.paced += float64(s.paced) * part
	t.maxGap = max(t.maxGap, int64(s.maxGapMS)*1e6)
	t.turns += int(s.turns)
	t.outOfOrder += int(s.outOfOrder)
	t.resent += int(s.resent)
	t.timeouts += int(s.timeouts)
	t.probes += int(s.probes)
	t.lostTurns += int(s.lostN)
	t.silentTurns += int(s.silentN)
	t.muteTurns += int(s.muteN)
	t.lateTurns += int(s.lateN)
	t.evenTurns += int(s.evenN)
	t.hostTurns += int(s.hostN)
	t.gapTurns += int(s.gapN)
}

// sumRing keeps the slots in which a leg was busy, ordered by index.
type sumRing struct{ slots []slot }

func (r *sumRing) find(index int64) int {
	n := len(r.slots)
	if n == 0 || r.slots[n-1].index < index {
		return n // in order
	}
	return sort.Search(n, func(i int) bool { return r.slots[i].index >= index })
}

// slot finds or makes the slot of index, or returns nil when it is older than
// all that are kept.
func (r *sumRing) slot(index int64) *slot {
	i := r.find(index)
	if i == len(r.slots) || r.slots[i].index != index {
		r.slots = append(r.slots, slot{})
		copy(r.slots[i+1:], r.slots[i:])
		r.slots[i] = slot{index: index}
	}
	return &r.slots[i]
}

// trim forgets slots before oldest and beyond max, an eighth at a time so that
// each is moved a few times only. It returns how many were lost to max.
func (r *sumRing) trim(oldest int64, max int) (lost int) {
	old := r.find(oldest)
	if over := len(r.slots) - max; over > old {
		over += max / 8
		over = min(over, len(r.slots))
		lost = over - old
		old = over
	}
	if old > 0 && (lost > 0 || old >= len(r.slots)/8) {
		r.slots = r.slots[:copy(r.slots, r.slots[old:])]
	}
	return lost
}

// between calls f for each slot that touches from..to, with the part of it
// that does.
func (r *sumRing) between(fromNS, toNS int64, f func(*slot, float64)) {
	for i := r.find(fromNS / slotNS); i < len(r.slots); i++ {
		s := &r.slots[i]
		start := s.index * slotNS
		if start >= toNS {
			return
		}
		f(s, float64(min(toNS, start+slotNS)-max(fromNS, start))/float64(slotNS))
	}
}
