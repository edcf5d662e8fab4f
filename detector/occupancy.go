package detector

// occupancy measures how much of a stretch of time each leg took. A second
// in which several legs were busy is split evenly, so that no second is spent
// twice and the sum is never more than the time that passed.
//
// It merges the busy intervals of all legs in order of time. Sharing is done
// with a virtual clock that runs at 1/k while k legs are busy: what a leg took
// is how far that clock went between its start and its end.
type occupancy struct {
	cursors []cursor
	heap    []next
	busy    []legBusy
}

// next is when a cursor moves on; the heap has the earliest first.
type next struct {
	ns     int64
	cursor int32
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
	at             float64 // the virtual clock at its start
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
	o.cursors, o.heap, o.busy = o.cursors[:0], o.heap[:0], o.busy[:0]
	for _, l := range legs {
		if l.turns.n == 0 {
			continue
		}
		c := cursor{leg: l, fromNS: fromNS, toNS: toNS}
		if c.i, c.i1 = l.turns.window(fromNS, toNS); c.i == c.i1 {
			continue
		}
		b := legBusy{leg: l}
		if c.advance(&b.turns) {
			o.heap = append(o.heap, next{c.startNS, int32(len(o.cursors))})
			o.cursors, o.busy = append(o.cursors, c), append(o.busy, b)
		}
	}
	for i := len(o.heap)/2 - 1; i >= 0; i-- {
		o.sink(i)
	}
	var clock float64
	var nowNS int64
	inside := 0
	for len(o.heap) > 0 {
		top := &o.heap[0]
		c, b := &o.cursors[top.cursor], &o.busy[top.cursor]
		if inside > 0 {
			clock += float64(top.ns-nowNS) / float64(inside)
		}
		nowNS = top.ns
		if !c.inside {
			c.inside, c.at = true, clock
			inside++
			top.ns = c.endNS
		} else {
			b.ns += clock - c.at
			inside--
			c.inside = false
			if c.advance(&b.turns) {
				top.ns = c.startNS
			} else {
				last := len(o.heap) - 1
				o.heap[0] = o.heap[last]
				o.heap = o.heap[:last]
			}
		}
		o.sink(0)
	}
}

// sink restores the heap after element i moved on.
func (o *occupancy) sink(i int) {
	h := o.heap
	if i >= len(h) {
		return
	}
	x := h[i]
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].ns < h[child].ns {
			child++
		}
		if x.ns <= h[child].ns {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = x
}
