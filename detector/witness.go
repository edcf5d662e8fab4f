package detector

import (
	"slices"

	"grayfail/event"
)

// testimony is what the exchanges of one leg say about its excess in a phase.
// The times are each exchange's own excess over its class, counted for the
// first witness that fits; ns.
type testimony struct {
	turns int

	lost   float64 // a segment was surely lost in this exchange
	silent float64 // silence of a retransmission timeout, and no other trace
	mute   float64 // ACKed early, and the first byte late by just such a timeout
	late   float64 // the request was ACKed late and the reply came right after
	even   float64 // the reply came evenly slow
	host   float64 // the process was late: ACKed early, or read late, and answered late
	gap    float64 // one gap, too short for a timeout

	// acked, trips and paced are the excess that a slow path would explain: by
	// the lower quartile of the ACK delay, by the median RTT, and by the lower
	// quartile of the time a reply takes to arrive.
	acked, trips, paced float64

	// Evidence in numbers, for the detail.
	lostTurns, silentTurns, muteTurns, lateTurns, evenTurns, hostTurns, gapTurns int
	outOfOrder, resent, timeouts, probes                                         int
	maxGap                                                                       int64
	qdiscDrops                                                                   uint64
}

// hard reports a witness of loss that nothing else can explain.
func (t *testimony) hard() bool {
	return t.outOfOrder > 0 || t.resent > 0 || t.timeouts > 0 || t.qdiscDrops > 0
}

// usual is what even the quicker exchanges of a class show in a window: the
// lower quartiles of the ACK delay over its reference and of the largest gap.
// What all of them show is no event.
type usual struct {
	ack, gap float64
	// readLate: ACKs are late, and even the quicker replies come a computation
	// after them. A slow path keeps ACK and reply as near to each other as they
	// were; a process that reads late makes the kernel acknowledge the read at
	// once and the reply follows when it is computed. A request that trickles
	// through a rate limit parts them too, but its first segments are ACKed
	// early: the RTT stays well below the ACK delay, and no tail probe finds
	// the request there already.
	readLate bool
}

// Between ACKs and replies lay less than 0.01 of the lateness of ACKs on paths
// of 10 to 50 ms delay, 0.2 with a process stopped 85% of the time. The RTT
// rose by as much as the ACK delay in both, by 0.4 of it under a rate limit.
const (
	readLateShare = 0.1
	readLateTrips = 0.6
	// readLateProbed of the exchanges had a tail probe answered by a DSACK: a
	// third with that process, one in a hundred on those paths.
	readLateProbed = 0.1
)

// dsackDelay is how much later than its retransmit a DSACK may be counted: it
// comes back one round trip later, when the next exchange has begun.
const dsackDelay = int64(1e9)

// A first retransmission timeout takes 200 ms, the round trip and a few ticks;
// 204 to 264 ms were seen. A process that has no CPU knows no such number.
const (
	timeoutFloor   = 200e6
	timeoutCeiling = 280e6
)

// hearing holds the scratch space for hearing the witnesses of one leg.
type hearing struct {
	column  []int64
	usual   [maxClasses + 1]usual
	net     []int // per turn of the window: retransmits that no DSACK called needless
	timeout []bool
}

// hear examines the turns of l in from..to.
func (h *hearing) hear(l *leg, fromNS, toNS int64, c *CauseConfig) testimony {
	var out testimony
	i0, i1 := l.turns.window(fromNS, toNS)
	h.countLost(l, i0, i1)
	h.quartiles(l, i0, i1, fromNS, toNS, &out)
	for i := i0; i < i1; i++ {
		t := l.turns.at(i)
		clip := t.clip(fromNS, toNS)
		if clip == 0 {
			continue
		}
		h.examine(l, t, clip, t.endNS <= toNS, h.net[i-i0], h.timeout[i-i0], c, &out)
	}
	return out
}

// long tells whether an exchange took so much longer than its class that its
// witnesses are heard, and how much.
func (l *leg) long(t *turn, c *CauseConfig) (ref turnTimes, excess float64, long bool) {
	ref, _ = l.reference(t.class)
	excess = float64(t.duration()) - float64(ref.duration)
	return ref, excess, excess >= max(float64(c.LateFloor), float64(ref.duration)/2)
}

// quiet counts the turns that end in from..to; ok is false when one of those
// in it has something to say.
func (l *leg) quiet(fromNS, toNS int64, c *CauseConfig) (turns int, ok bool) {
	i0, i1 := l.turns.window(fromNS, toNS)
	for i := i0; i < i1; i++ {
		t := l.turns.at(i)
		if t.outOfOrder > 0 || t.resent > t.dup || len(l.resends.ring) > 0 {
			return 0, false
		}
		if _, _, long := l.long(t, c); long {
			return 0, false
		}
		if t.endNS <= toNS && t.endNS > fromNS {
			turns++
		}
	}
	return turns, true
}

// alone examines one exchange by itself.
func (h *hearing) alone(l *leg, t *turn, fromNS, toNS int64, c *CauseConfig, out *testimony) {
	h.usual = [maxClasses + 1]usual{}
	h.examine(l, t, t.clip(fromNS, toNS), t.endNS <= toNS, max(0, int(t.resent)-int(t.dup)), false, c, out)
}

// examine takes what one exchange shows, clip ns of which are looked at. An
// exchange is counted where it ends, so that none is counted twice.
func (h *hearing) examine(l *leg, t *turn, clip int64, ends bool, resent int, timeout bool, c *CauseConfig, out *testimony) {
	count := 0
	if ends {
		count = 1
		out.turns++
		out.outOfOrder += int(t.outOfOrder)
		out.resent += resent
		if timeout {
			out.timeouts++
		}
	}
	ref, excess, long := l.long(t, c)
	if !long {
		return
	}
	own := excess * float64(clip) / float64(t.duration())
	// The first witness that fits gets it.
	seen := newSighting(t, ref)
	rto, usual := float64(c.RTOGap), h.usual[min(int(t.class), maxClasses)]
	switch {
	case t.outOfOrder > 0 || resent > 0 || timeout:
		out.lost += own
		out.lostTurns += count
		out.maxGap = max(out.maxGap, t.stall)
	case float64(t.stall)-usual.gap >= rto:
		out.silent += own
		out.silentTurns += count
		out.maxGap = max(out.maxGap, t.stall)
	case seen.ack-usual.ack >= rto && seen.first-usual.ack >= rto:
		// Against the path's own delay: 200 ms of it are no timeout.
		out.silent += own
		out.silentTurns += count
	case seen.ack >= 0.5*excess && seen.answer <= 0.25*excess && !usual.readLate:
		out.late += own
		out.lateTurns += count
	case seen.lateBody >= 0.5*excess && float64(t.stall) <= c.EvenGap*seen.body:
		out.even += own
		out.evenTurns += count
	case seen.answer >= rto && seen.answer >= timeoutFloor && seen.answer < timeoutCeiling:
		// A reply of one segment leaves no gap when it is lost.
		out.mute += own
		out.muteTurns += count
	case float64(t.stall) >= 0.5*excess:
		out.gap += own
		out.gapTurns += count
		out.probes += int(t.dup) * count
	case seen.answer >= excess/3 || usual.readLate && seen.first >= 0.5*excess:
		out.host += own
		out.hostTurns += count
		out.probes += int(t.dup) * count
	}
}

// sighting is how late the parts of one exchange were, in ns.
type sighting struct {
	ack      float64 // the ACK over its reference
	first    float64 // the first reply byte over its reference
	answer   float64 // from the ACK to the first reply byte, over its reference
	body     float64 // from the first reply byte to the last
	lateBody float64 // that over its reference
}

func newSighting(t *turn, ref turnTimes) sighting {
	end := float64(t.duration())
	ack, first := float64(t.ack), float64(t.first)
	if t.first == 0 { // not a byte of the reply has come
		first = end
	}
	if t.ack == 0 { // nor the ACK; a reply acknowledges too
		ack = first
	}
	body := end - first
	return sighting{
		ack:      ack - float64(ref.ack),
		first:    first - float64(ref.first),
		answer:   first - ack - max(0, float64(ref.first-ref.ack)),
		body:     body,
		lateBody: body - max(0, float64(ref.duration-ref.first)),
	}
}

// countLost nets retransmits with DSACKs, exchange by exchange: a DSACK says
// that the peer had the segment already. One that comes during a later
// exchange belongs to the youngest retransmit before it. Retransmits of kind
// tlp and cwr are no evidence by themselves: a slow peer draws tail probes
// (186 of 186 were answered by DSACKs).
func (h *hearing) countLost(l *leg, i0, i1 int) {
	h.net, h.timeout = h.net[:0], h.timeout[:0]
	resent := false
	for i := i0; i < i1; i++ {
		t := l.turns.at(i)
		h.net, h.timeout = append(h.net, max(0, int(t.resent)-int(t.dup))), append(h.timeout, false)
		resent = resent || t.resent > t.dup
		if t.resent > 0 || len(l.resends.ring) == 0 {
			continue // counted and netted
		}
		l.resends.between(t.sendNS, t.endNS, func(r resend) {
			if r.kind == event.RetransmitFast || r.kind == event.RetransmitRTO {
				h.timeout[i-i0] = true
			}
		})
	}
	if !resent {
		return
	}
	stop, last := i1, l.turns.at(i1-1).endNS
	for stop < l.turns.n && l.turns.at(stop).sendNS <= last+dsackDelay {
		stop++
	}
	spare, spareNS := 0, int64(0)
	for i := stop - 1; i >= i0; i-- {
		t := l.turns.at(i)
		if spare > 0 && spareNS-t.endNS > dsackDelay {
			spare = 0
		}
		net := int(t.resent) - int(t.dup)
		if net < 0 {
			spare, spareNS = spare-net, t.sendNS
			continue
		}
		used := min(net, spare)
		spare -= used
		if i < i1 {
			h.net[i-i0] = net - used
		}
	}
}

// fewTurns is how many turns of a class a quartile needs.
const fewTurns = 4

// quartiles finds how much of the excess a slow path explains: every exchange
// of a class is late by the lower quartile of its ACK delay, by the median of
// its RTT, and its reply by the lower quartile of the time it took to arrive.
// A slow host delays some, a slow path all of them.
func (h *hearing) quartiles(l *leg, i0, i1 int, fromNS, toNS int64, out *testimony) {
	h.usual = [maxClasses + 1]usual{}
	var present [maxClasses + 1]bool
	for i := i0; i < i1; i++ {
		present[min(int(l.turns.at(i).class), maxClasses)] = true
	}
	anyAck := h.collect(l, i0, i1, fromNS, toNS, allClasses, func(t *turn) int64 {
		ref, _ := l.reference(t.class)
		return t.ack - int64(ref.ack)
	})
	leg := max(0, float64(lowerQuartile(anyAck)))
	for class := range len(l.classes) {
		if !present[class] {
			continue
		}
		of := func(f func(*turn) int64) []int64 { return h.collect(l, i0, i1, fromNS, toNS, class, f) }
		ref, _ := l.reference(uint8(class))
		acks := of(func(t *turn) int64 { return t.ack })
		late := max(0, float64(lowerQuartile(acks))-float64(ref.ack))
		n := float64(len(acks))
		h.usual[class].ack = leg
		if len(acks) >= fewTurns {
			h.usual[class].ack = late
		}
		answers := of(func(t *turn) int64 { return t.first - t.ack })
		apart := float64(lowerQuartile(answers)) - max(0, float64(ref.first-ref.ack))
		trips := of(func(t *turn) int64 { return t.rtt })
		longer := max(0, float64(medianOf(trips))-float64(ref.rtt))
		out.trips += longer * n
		probed := 0.0
		for _, dup := range of(func(t *turn) int64 { return int64(t.dup) }) {
			probed += float64(min(dup, 1))
		}
		h.usual[class].readLate = late > 0 && apart >= readLateShare*late && (longer >= readLateTrips*late || probed >= readLateProbed*n)
		if !h.usual[class].readLate {
			out.acked += late * n
		}
		bodies := of(func(t *turn) int64 { return t.duration() - t.first })
		out.paced += max(0, float64(lowerQuartile(bodies))-max(0, float64(ref.duration-ref.first))) * float64(len(bodies))
		if gaps := of(func(t *turn) int64 { return t.stall }); len(gaps) >= fewTurns {
			h.usual[class].gap = float64(lowerQuartile(gaps))
		}
	}
}

// lowerQuartile sorts values in place.
func lowerQuartile(values []int64) int64 {
	slices.Sort(values)
	return nearestRank(values, 0.25)
}

// allClasses asks collect for the turns of every class.
const allClasses = -1

// collect gathers one time of the turns of a class that were ACKed.
func (h *hearing) collect(l *leg, i0, i1 int, fromNS, toNS int64, class int, of func(*turn) int64) []int64 {
	h.column = h.column[:0]
	for i := i0; i < i1; i++ {
		if t := l.turns.at(i); (class == allClasses || int(t.class) == class) && t.ack > 0 && t.clip(fromNS, toNS) > 0 {
			h.column = append(h.column, of(t))
		}
	}
	return h.column
}
