package detector

import (
	"slices"
	"sort"

	"grayfail/event"
)

// turn is an exchange as the detector keeps it. Times are ns.
type turn struct {
	sendNS, endNS int64
	// reachNS is the latest end of this turn and all before it in the ring:
	// turns of parallel sockets overlap, and the first one that reaches into a
	// window is found by bisection.
	reachNS int64
	// first, ack and stall are delays and a gap; 0 means not seen.
	first, ack, stall, rtt  int64
	socket                  uint64
	outOfOrder, resent, dup uint16
	class                   uint8
	open                    bool
	// learned: its class has seen it already (concurrent requests share turns).
	learned bool
}

func (t *turn) duration() int64 { return t.endNS - t.sendNS }

// clip is how much of the turn lies in from..to.
func (t *turn) clip(fromNS, toNS int64) int64 {
	return max(0, min(t.endNS, toNS)-max(t.sendNS, fromNS))
}

func makeTurn(e *event.Exchange) turn {
	d := max(0, int64(e.Duration))
	return turn{
		sendNS: e.SendNS, endNS: e.SendNS + d,
		first: int64(e.FirstByte), ack: int64(e.Ack), stall: min(int64(e.Stall), d), rtt: int64(e.RTT),
		socket:     e.Flow.Socket,
		outOfOrder: clamp16(e.OutOfOrder), resent: clamp16(e.Retransmits), dup: clamp16(e.DSACKs),
		open: e.Open,
	}
}

func clamp16(n uint32) uint16 { return uint16(min(n, 1<<16-1)) }

// turnRing keeps the newest turns of one leg, ordered by send time.
type turnRing struct {
	ring []turn // length is a power of two
	head int
	n    int
	// waits are the turns that are open and have no reply byte: few, at most
	// one for each socket.
	waits []wait
}

// wait finds an unanswered turn.
type wait struct {
	socket uint64
	sendNS int64
}

// maxWaits bounds them; what does not fit is not superseded, but ages out.
const maxWaits = 1024

// note keeps waits true after an unanswered turn came, or one was answered or
// left.
func (r *turnRing) note(t *turn, waiting bool) {
	key := wait{t.socket, t.sendNS}
	i := slices.Index(r.waits, key)
	switch {
	case waiting && i < 0 && len(r.waits) < maxWaits:
		r.waits = append(r.waits, key)
	case !waiting && i >= 0:
		r.waits = slices.Delete(r.waits, i, i+1)
	}
}

func (r *turnRing) at(i int) *turn { return &r.ring[(r.head+i)&(len(r.ring)-1)] }

// put inserts t, or lets it replace an earlier look at the same exchange. It
// reports whether the ring grew by one.
func (r *turnRing) put(t turn) bool {
	i := r.n
	for i > 0 && before(&t, r.at(i-1)) {
		i--
	}
	if i > 0 {
		if old := r.at(i - 1); old.sendNS == t.sendNS && old.socket == t.socket {
			if replaces(&t, old) {
				if unanswered(old) || unanswered(&t) {
					r.note(&t, unanswered(&t))
				}
				t.learned = old.learned
				t.reachNS = unreached
				*old = t
				r.reach(i - 1)
			}
			return false
		}
	}
	if r.n == len(r.ring) {
		r.grow()
	}
	r.n++
	for j := r.n - 1; j > i; j-- {
		*r.at(j) = *r.at(j - 1)
	}
	t.reachNS = unreached
	*r.at(i) = t
	if unanswered(&t) {
		r.note(&t, true)
	}
	r.reach(i)
	return true
}

// supersede settles open looks: the exchanges of a socket follow each other, so
// a look without a reply byte that another send came after was at a request
// still being written, and the exchange begins with the last send. It removes
// such looks and reports how many, and whether t is one itself.
func (r *turnRing) supersede(t *turn) (removed int, gone bool) {
	if t.socket == 0 {
		return 0, false
	}
	if unanswered(t) {
		for i := r.n - 1; i >= 0 && r.at(i).sendNS > t.sendNS; i-- {
			if r.at(i).socket == t.socket {
				return 0, true
			}
		}
	}
	for k := len(r.waits) - 1; k >= 0; k-- {
		w := r.waits[k]
		if w.socket != t.socket || w.sendNS >= t.sendNS {
			continue
		}
		r.waits = slices.Delete(r.waits, k, k+1)
		i := r.find(&turn{socket: w.socket, sendNS: w.sendNS})
		if i < 0 {
			continue
		}
		for j := i; j < r.n-1; j++ {
			*r.at(j) = *r.at(j + 1)
		}
		r.n--
		r.reach(i)
		removed++
	}
	return removed, false
}

func unanswered(t *turn) bool { return t.open && t.first == 0 }

// find returns the index of an earlier look at the same exchange, or -1.
func (r *turnRing) find(t *turn) int {
	i := sort.Search(r.n, func(i int) bool { return !before(r.at(i), t) })
	if i < r.n && r.at(i).sendNS == t.sendNS && r.at(i).socket == t.socket {
		return i
	}
	return -1
}

func before(a, b *turn) bool {
	if a.sendNS != b.sendNS {
		return a.sendNS < b.sendNS
	}
	return a.socket < b.socket
}

// replaces: an exchange that ended beats a look at it while it was open, a
// later look an earlier one.
func replaces(t, old *turn) bool {
	if t.open != old.open {
		return old.open
	}
	return t.endNS > old.endNS
}

// unreached is the reachNS of a turn that reach has not seen.
const unreached = -1

// reach restores reachNS from i on.
func (r *turnRing) reach(i int) {
	for ; i < r.n; i++ {
		t := r.at(i)
		reach := t.endNS
		if i > 0 {
			reach = max(reach, r.at(i-1).reachNS)
		}
		if t.reachNS == reach {
			return // t is not new, so all after it hold too
		}
		t.reachNS = reach
	}
}

func (r *turnRing) grow() {
	bigger := make([]turn, max(64, 2*len(r.ring)))
	for i := range r.n {
		bigger[i] = *r.at(i)
	}
	r.ring, r.head = bigger, 0
}

// dropOldest forgets n turns.
func (r *turnRing) dropOldest(n int) {
	for i := 0; i < n && len(r.waits) > 0; i++ {
		if t := r.at(i); unanswered(t) {
			r.note(t, false)
		}
	}
	r.head = (r.head + n) & (len(r.ring) - 1)
	r.n -= n
}

// window returns the indices i0 <= i < i1 of turns that may lie in from..to;
// some in between may not.
func (r *turnRing) window(fromNS, toNS int64) (i0, i1 int) {
	i1 = sort.Search(r.n, func(i int) bool { return r.at(i).sendNS >= toNS })
	i0 = sort.Search(i1, func(i int) bool { return r.at(i).reachNS > fromNS })
	return i0, i1
}

// hung returns the longest wait of at least limit for a reply of which not a
// byte came, among the turns in from..to; 0 for none.
func (r *turnRing) hung(fromNS, toNS, limit int64) (longest int64) {
	if r.n == 0 {
		return 0
	}
	i0, i1 := r.window(fromNS, toNS)
	for i := i0; i < i1; i++ {
		t := r.at(i)
		if t.first == 0 && t.duration() >= limit && t.clip(fromNS, toNS) > 0 {
			longest = max(longest, t.duration())
		}
	}
	return longest
}
