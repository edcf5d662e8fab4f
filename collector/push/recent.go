package push

import (
	"hash/maphash"
	"sync"
	"time"
)

// remember is how long a repeated id is ignored.
const remember = 10 * time.Minute

// recent knows the ids of the last 10 minutes, as hashes. When more than max
// came in that time, the oldest are forgotten early and counted: a repeat of
// one of those is taken again.
type recent struct {
	mu   sync.Mutex
	seed maphash.Seed
	max  int
	// seen and the ring hold the same ids; the ring is in order of arrival.
	seen      map[uint64]struct{}
	ring      []arrival
	oldest    int
	forgotten uint64
}

type arrival struct {
	id uint64
	at time.Time
}

func newRecent(max int) *recent {
	return &recent{seed: maphash.MakeSeed(), max: max, seen: make(map[uint64]struct{})}
}

// repeated says whether the id came in the last 10 minutes; if not, it has
// come now.
func (r *recent) repeated(id string, now time.Time) bool {
	hash := maphash.String(r.seed, id)
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.seen) > 0 && now.Sub(r.ring[r.oldest].at) >= remember {
		r.drop()
	}
	if _, ok := r.seen[hash]; ok {
		return true
	}
	if len(r.seen) == r.max {
		r.drop()
		r.forgotten++
	}
	r.seen[hash] = struct{}{}
	r.add(arrival{hash, now})
	return false
}

// add puts an arrival behind the newest; the ring grows as it is needed.
func (r *recent) add(a arrival) {
	held := len(r.seen) - 1
	if held < len(r.ring) {
		r.ring[(r.oldest+held)%len(r.ring)] = a
		return
	}
	// Full: lay the ring out from its oldest on, and let append find room.
	ring := make([]arrival, 0, min(r.max, max(16, 2*len(r.ring))))
	ring = append(append(ring, r.ring[r.oldest:]...), r.ring[:r.oldest]...)
	ring = append(ring, a)
	r.ring, r.oldest = ring[:cap(ring)], 0
}

func (r *recent) drop() {
	delete(r.seen, r.ring[r.oldest].id)
	r.oldest = (r.oldest + 1) % len(r.ring)
}

// dropped is how many ids were forgotten early.
func (r *recent) dropped() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.forgotten
}
