package detector

// occupancy measures how much of a stretch of time each leg took. A second
// in which several legs were busy is split evenly, so that no second is spent
// twice and the sum is never more than the time that passed.
//
// It merges the busy intervals of all legs in order of time. Sharing is done
// with a virtual clock that runs at 1/k while k legs are busy: what a leg took
// is how far that clock went between its start and its end.
type occupancy struct {
	cursors []cursor // a heap by next
	busy    []legBusy
}

// legBusy is what one leg took, in ns.
type legBusy struct {
	leg *leg
	ns  float64
	// turns that lie in the stretch at least in part.
	turns int
}

// cursor walks over the busy intervals of one leg.
type cursor struct {
	leg            *leg
	i, i1          int
	fromNS, toNS   int64
	startNS, endNS int64 // the current interval
	inside         bool
	nextNS         int64 // when it starts or ends
	at             float64
	busy           int // index of its entry
}

// advance finds the next busy interval: turns of parallel sockets that touch
// are one.
func (c *cursor) advance(turns *int) bool {
	for c.i < c.i1 {
		t := c.leg.turns.at(c.i)
		c.i++
		if t.clip(c.fromNS, c.toNS) == 0 {
			continue
		}
		*turns++
		c.startNS, c.endNS = max(t.sendNS, c.fromNS), min(t.endNS, c.toNS)
		for c.i < c.i1 {
			t = c.leg.turns.at(c.i)
			if t.sendNS > c.endNS {
				break
			}
			c.i++
			if t.clip(c.fromNS, c.toNS) > 0 {
				*turns++
			}
			c.endNS = max(c.endNS, min(t.endNS, c.toNS))
		}
		return true
	}
	return false
}

// measure fills o.busy with the legs that were busy in from..to, in the order
// of the leg table.
func (o *occupancy) measure(legs []*leg, fromNS, toNS int64) {
	o.cursors, o.busy = o.cursors[:0], o.busy[:0]
	for _, l := range legs {
		c := cursor{leg: l, fromNS: fromNS, toNS: toNS, busy: len(o.busy)}
		if l.turns.n == 0 {
			continue
		}
		if c.i, c.i1 = l.turns.window(fromNS, toNS); c.i == c.i1 {
			continue
		}
		b := legBusy{leg: l}
		if c.advance(&b.turns) {
			c.nextNS = c.startNS
			o.busy = append(o.busy, b)
			o.push(c)
		}
	}
	var clock float64
	var nowNS int64
	inside := 0
	for len(o.cursors) > 0 {
		c := &o.cursors[0]
		if inside > 0 {
			clock += float64(c.nextNS-nowNS) / float64(inside)
		}
		nowNS = c.nextNS
		switch {
		case !c.inside:
			c.inside, c.at, c.nextNS = true, clock, c.endNS
			inside++
		default:
			b := &o.busy[c.busy]
			b.ns += clock - c.at
			inside--
			if !c.advance(&b.turns) {
				last := len(o.cursors) - 1
				o.cursors[0] = o.cursors[last]
				o.cursors = o.cursors[:last]
				break
			}
			c.inside, c.nextNS = false, c.startNS
		}
		o.sink()
	}
}

func (o *occupancy) push(c cursor) {
	o.cursors = append(o.cursors, c)
	for i := len(o.cursors) - 1; i > 0; {
		parent := (i - 1) / 2
		if o.cursors[parent].nextNS <= o.cursors[i].nextNS {
			return
		}
		o.cursors[parent], o.cursors[i] = o.cursors[i], o.cursors[parent]
		i = parent
	}
}

// sink restores the heap after its first element moved on.
func (o *occupancy) sink() {
	h := o.cursors
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].nextNS < h[child].nextNS {
			child++
		}
		if h[i].nextNS <= h[child].nextNS {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
