package detector

import (
	"math"
	"math/bits"
	"slices"
)

// class groups exchanges of one leg that do the same thing: the size of the
// request and of the reply in powers of two. Its reference is the median of
// what accepted requests needed.
type class struct {
	request, reply uint8 // bits.Len64 of the bytes
	ring           [classSamples]turnTimes
	n              int // samples ever; the ring holds the last classSamples
	cached         turnTimes
	cachedAt       int // n when cached was computed
}

const (
	classSamples = 64
	maxClasses   = 48
	// trustedSamples is the fewest that make a reference.
	trustedSamples = 5
	noClass        = 255
)

// turnTimes are the times of one exchange, or their medians, in ns.
type turnTimes struct{ duration, first, ack, rtt float32 }

// classOf finds or makes the class of an exchange; noClass beyond maxClasses.
func (l *leg) classOf(requestBytes, replyBytes uint64) uint8 {
	q, p := uint8(bits.Len64(requestBytes)), uint8(bits.Len64(replyBytes))
	for i := range l.classes {
		if c := &l.classes[i]; c.request == q && c.reply == p {
			return uint8(i)
		}
	}
	if len(l.classes) == maxClasses {
		return noClass
	}
	l.classes = append(l.classes, class{request: q, reply: p})
	return uint8(len(l.classes) - 1)
}

// learn takes one exchange of an accepted request. Once the ring is full only
// one in four counts, so that it covers several requests; which one depends on
// its send time alone, so that replays agree.
func (c *class) learn(t *turn) {
	if c.n >= classSamples && mix(uint64(t.sendNS))&3 != 0 {
		return
	}
	c.ring[c.n%classSamples] = turnTimes{float32(t.duration()), float32(t.first), float32(t.ack), float32(t.rtt)}
	c.n++
}

// mix spreads the bits of x (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (c *class) median() turnTimes {
	if c.cachedAt == c.n {
		return c.cached
	}
	var column [classSamples]float32
	n := min(c.n, classSamples)
	take := func(of func(*turnTimes) float32) float32 {
		for i := range n {
			column[i] = of(&c.ring[i])
		}
		return medianOf(column[:n])
	}
	c.cached = turnTimes{
		duration: take(func(t *turnTimes) float32 { return t.duration }),
		first:    take(func(t *turnTimes) float32 { return t.first }),
		ack:      take(func(t *turnTimes) float32 { return t.ack }),
		rtt:      take(func(t *turnTimes) float32 { return t.rtt }),
	}
	c.cachedAt = c.n
	return c.cached
}

// reference returns the medians of a class, else those of the class nearest in
// size; ok is false when the leg has no reference at all.
func (l *leg) reference(index uint8) (turnTimes, bool) {
	var request, reply int
	if int(index) < len(l.classes) {
		c := &l.classes[index]
		if c.n >= trustedSamples {
			return c.median(), true
		}
		request, reply = int(c.request), int(c.reply)
	}
	var best *class
	distance := 0
	for i := range l.classes {
		c := &l.classes[i]
		if c.n < trustedSamples {
			continue
		}
		d := abs(int(c.request)-request) + abs(int(c.reply)-reply)
		// Of two as near the larger, whatever the order in which they came up.
		if best == nil || d < distance || d == distance && (c.request > best.request || c.request == best.request && c.reply > best.reply) {
			best, distance = c, d
		}
	}
	if best == nil {
		return turnTimes{}, false
	}
	return best.median(), true
}

func abs(x int) int { return max(x, -x) }

// legReferences is what each leg took per token in accepted requests of one
// stratum.
type legReferences struct {
	requests int // accepted requests in which any exchange was seen
	legs     []legReference
}

type legReference struct {
	leg  *leg
	ring [referenceSamples]logSpan // ns per token
	n    uint32
}

// logSpan is a span in ns by its logarithm, in 2 bytes: with 256 legs a stratum
// has thousands of them. It is right to 0.04% from 2^-10 ns to 2^53 ns; 0 is 0.
type logSpan uint16

const (
	logSteps  = 1024 // to the octave
	logLowest = -10  // octaves
)

func makeLogSpan(ns float64) logSpan {
	if !(ns > 0) {
		return 0
	}
	return logSpan(min(max(1, math.Round((math.Log2(ns)-logLowest)*logSteps)), math.MaxUint16))
}

func (s logSpan) ns() float64 {
	if s == 0 {
		return 0
	}
	return math.Exp2(float64(s)/logSteps + logLowest)
}

const referenceSamples = 32

// learn takes what the legs took in one accepted request.
func (r *legReferences) learn(busy []legBusy, tokens float64) {
	for i := range r.legs {
		r.legs[i].add(0)
	}
	for _, b := range busy {
		ref := r.find(b.leg)
		if ref == nil {
			if n := len(r.legs); n == cap(r.legs) { // no more room than is needed: there are many strata
				r.legs = append(make([]legReference, 0, n+8), r.legs...)
			}
			// It took nothing in the requests before.
			r.legs = append(r.legs, legReference{leg: b.leg, n: uint32(min(r.requests, referenceSamples) + 1)})
			ref = &r.legs[len(r.legs)-1]
		}
		ref.ring[(ref.n-1)%referenceSamples] = makeLogSpan(b.ns / tokens)
	}
	r.requests++
}

func (r *legReference) add(x logSpan) {
	r.ring[r.n%referenceSamples] = x
	if r.n++; r.n == 1<<31 {
		r.n -= 1 << 30 // a multiple of the ring
	}
}

func (r *legReferences) find(l *leg) *legReference {
	for i := range r.legs {
		if r.legs[i].leg == l {
			return &r.legs[i]
		}
	}
	return nil
}

// perToken is the reference of one leg in ns; 0 for a leg that accepted
// requests did not use.
func (r *legReferences) perToken(l *leg) float64 {
	ref := r.find(l)
	if ref == nil {
		return 0
	}
	column := ref.ring
	n := min(ref.n, referenceSamples)
	slices.Sort(column[:n])
	return (column[(n-1)/2].ns() + column[n/2].ns()) / 2
}

func (r *legReferences) forget(l *leg) {
	r.legs = slices.DeleteFunc(r.legs, func(ref legReference) bool { return ref.leg == l })
}

func (r *legReferences) clear() { r.requests, r.legs = 0, r.legs[:0] }
