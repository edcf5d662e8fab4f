package detector

import (
	"slices"

	"grayfail/event"
)

// leg is everything the detector keeps about one leg.
type leg struct {
	name string
	// collective legs stand for several that did not fit: never named.
	collective bool
	usedNS     int64 // event time when it was last heard of

	turns   turnRing
	sums    sumRing
	classes []class
	resends resendRing
	failed  failureRing

	netns, device string
	rdma          rdmaPort // whose counters are this leg's
	transport     event.Transport
	reason        string
	// leftRDMANS is when the leg was last seen to leave RDMA; 0 when it did
	// not, or came back.
	leftRDMANS int64
}

// setTransport notes a change.
func (l *leg) setTransport(c event.LegChange) {
	if c.Device != "" {
		l.netns, l.device = c.Netns, c.Device
	}
	l.rdma = rdmaPort{c.RDMADevice, c.RDMAPort}
	switch {
	case c.Transport == event.TransportRDMA:
		l.leftRDMANS = 0
	case l.transport == event.TransportRDMA && (c.Transport == event.TransportFallback || c.Transport == event.TransportTCP):
		l.leftRDMANS = c.TimeNS
	}
	switch c.Transport {
	case event.TransportIdle, event.TransportUnknown, event.TransportStalled, event.TransportQueued,
		event.TransportDead, event.TransportHalfOpen:
		// These say nothing about what carries the payload: what it was carried
		// by before them is what it leaves.
		if l.transport == "" {
			l.transport = c.Transport
		}
	default:
		l.transport = c.Transport
	}
	l.reason = c.Reason
}

// otherLeg is the name for legs beyond MaxLegs.
const otherLeg = "other"

// legTable finds legs by name.
type legTable struct {
	byName   map[string]*leg
	all      []*leg
	max      int
	overflow uint64
	last     *leg // exchanges come in runs of one leg

	// nowNS is event time. In a full table the least recently used leg makes
	// room for a new one, if nothing was heard of it for idleNS: more legs than
	// max that are all in use would else push each other out for ever.
	nowNS, idleNS int64
	freed         func(*leg)
	freedCount    uint64
}

// get finds or makes the leg; nil for the empty name.
func (t *legTable) get(name string) *leg {
	if t.last != nil && t.last.name == name {
		t.last.usedNS = t.nowNS
		return t.last
	}
	l := t.byName[name]
	if l == nil {
		if name == "" {
			return nil
		}
		collective := name == otherLeg
		if len(t.all) >= t.max && !collective && !t.free() {
			t.overflow++
			return t.get(otherLeg)
		}
		l = &leg{name: name, collective: collective}
		t.byName[name] = l
		t.all = append(t.all, l)
	}
	l.usedNS = t.nowNS
	t.last = l
	return l
}

// free forgets the least recently used leg if it is idle.
func (t *legTable) free() bool {
	var oldest *leg
	for _, l := range t.all {
		if l.usedNS == 0 { // from before time began
			l.usedNS = t.nowNS
		}
		if !l.collective && (oldest == nil || l.usedNS < oldest.usedNS) {
			oldest = l
		}
	}
	if oldest == nil || t.nowNS-oldest.usedNS < t.idleNS {
		return false
	}
	delete(t.byName, oldest.name)
	t.all = slices.DeleteFunc(t.all, func(l *leg) bool { return l == oldest })
	if t.last == oldest {
		t.last = nil
	}
	t.freedCount++
	t.freed(oldest)
	return true
}

// resend is one retransmit that this host saw itself.
type resend struct {
	timeNS int64
	kind   event.RetransmitKind
}

// resendRing keeps the newest retransmits of a leg, ordered by time.
type resendRing struct {
	ring []resend
}

const maxResends = 1024

func (r *resendRing) add(x resend) {
	i := len(r.ring)
	for i > 0 && r.ring[i-1].timeNS > x.timeNS {
		i--
	}
	if len(r.ring) == maxResends {
		if i == 0 {
			return
		}
		copy(r.ring, r.ring[1:i])
		r.ring[i-1] = x
		return
	}
	r.ring = append(r.ring, resend{})
	copy(r.ring[i+1:], r.ring[i:])
	r.ring[i] = x
}

// between calls f for each retransmit from..to.
func (r *resendRing) between(fromNS, toNS int64, f func(resend)) {
	for i := len(r.ring) - 1; i >= 0 && r.ring[i].timeNS >= fromNS; i-- {
		if r.ring[i].timeNS <= toNS {
			f(r.ring[i])
		}
	}
}

// count counts those from..to.
func (r *resendRing) count(fromNS, toNS int64) (n int) {
	for i := len(r.ring) - 1; i >= 0 && r.ring[i].timeNS >= fromNS; i-- {
		if r.ring[i].timeNS <= toNS {
			n++
		}
	}
	return n
}

// failureRing keeps when connections of a leg could not be made.
type failureRing struct {
	ring []int64
}

const maxFailures = 64

func (r *failureRing) add(timeNS int64) {
	if len(r.ring) == maxFailures {
		copy(r.ring, r.ring[1:])
		r.ring = r.ring[:maxFailures-1]
	}
	r.ring = append(r.ring, timeNS)
}

func (r *failureRing) count(fromNS, toNS int64) int {
	n := 0
	for _, t := range r.ring {
		if t >= fromNS && t <= toNS {
			n++
		}
	}
	return n
}
