package detector

import (
	"cmp"
	"strings"

	"grayfail/event"
)

// queue holds requests until their neighbours are known, ordered by end; the
// order is total, so that requests of equal times are judged alike however
// they arrive.
type queue struct {
	slab  []event.Request
	free  []int32
	order []int32 // indices into slab, from head on
	head  int

	// past are the intervals of judged requests, for the concurrency of those
	// that come after them.
	past     []past
	pastHead int
}

type past struct {
	source, id     string
	startNS, endNS int64
}

const (
	maxPast       = 4096
	maxNeighbours = 1024
)

func (q *queue) len() int { return len(q.order) - q.head }

func (q *queue) at(i int) *event.Request { return &q.slab[q.order[q.head+i]] }

func earlier(a, b *event.Request) bool {
	c := cmp.Or(
		cmp.Compare(a.EndNS, b.EndNS), cmp.Compare(a.StartNS, b.StartNS),
		strings.Compare(a.Source, b.Source), strings.Compare(a.Model, b.Model), strings.Compare(a.ID, b.ID),
		cmp.Compare(a.FirstTokenNS, b.FirstTokenNS), cmp.Compare(a.DecodeRate, b.DecodeRate), cmp.Compare(a.PrefillRate, b.PrefillRate),
		cmp.Compare(a.GeneratedTokens, b.GeneratedTokens), cmp.Compare(a.PromptTokens, b.PromptTokens),
		strings.Compare(string(a.Outcome), string(b.Outcome)), strings.Compare(a.Condition, b.Condition),
	)
	return c < 0
}

// push adds a request; arrivals are nearly in order. It returns false for one
// that waits already or was judged lately.
func (q *queue) push(r *event.Request) bool {
	if q.judged(r) {
		return false
	}
	if q.head > 64 && q.head > len(q.order)/2 {
		q.order = q.order[:copy(q.order, q.order[q.head:])]
		q.head = 0
	}
	var slot int32
	if n := len(q.free); n > 0 {
		slot, q.free = q.free[n-1], q.free[:n-1]
		q.slab[slot] = *r
	} else {
		slot = int32(len(q.slab))
		q.slab = append(q.slab, *r)
	}
	q.order = append(q.order, slot)
	i := len(q.order) - 1
	for i > q.head && earlier(r, &q.slab[q.order[i-1]]) {
		q.order[i] = q.order[i-1]
		i--
	}
	q.order[i] = slot
	if i > q.head && r.ID != "" && q.slab[q.order[i-1]] == *r {
		q.order = append(q.order[:i], q.order[i+1:]...)
		q.free = append(q.free, slot)
		return false
	}
	return true
}

// judged looks for r among the past ones. Those are in the order of their ends
// but for late ones, so a request that ends last is found new at once.
func (q *queue) judged(r *event.Request) bool {
	start, end, ok := interval(r)
	if !ok || r.ID == "" {
		return false
	}
	for i := range min(len(q.past), maxNeighbours) {
		p := q.newest(i)
		if p.endNS < end {
			return false
		}
		if p.endNS == end && p.startNS == start && p.id == r.ID && p.source == r.Source {
			return true
		}
	}
	return false
}

// pop takes the earliest; the pointer is good until the next push.
func (q *queue) pop() *event.Request {
	slot := q.order[q.head]
	q.head++
	q.free = append(q.free, slot)
	return &q.slab[slot]
}

// remember keeps the interval of a request that was judged.
func (q *queue) remember(r *event.Request) {
	start, end, ok := interval(r)
	if !ok {
		return
	}
	q.keep(past{r.Source, r.ID, start, end})
}

func (q *queue) keep(p past) {
	if len(q.past) < maxPast {
		q.past = append(q.past, p)
		return
	}
	q.past[q.pastHead] = p
	q.pastHead = (q.pastHead + 1) % maxPast
}

// newest returns the i-th newest of the past ones.
func (q *queue) newest(i int) *past {
	return &q.past[(q.pastHead+len(q.past)-1-i)%len(q.past)]
}

// concurrency is how many requests of the source were in flight during r,
// averaged over its time, r included: what the source says, else the overlap
// with the intervals known.
func (q *queue) concurrency(r *event.Request, slackNS int64) float64 {
	if r.Concurrency > 0 {
		return max(1, r.Concurrency)
	}
	start, end, ok := interval(r)
	if !ok {
		return 1
	}
	var shared int64
	overlap := func(source string, from, to int64) {
		if source == r.Source {
			shared += max(0, min(end, to)-max(start, from))
		}
	}
	for i := range min(len(q.past), maxNeighbours) {
		p := q.newest(i)
		if p.endNS+slackNS < start {
			break
		}
		overlap(p.source, p.startNS, p.endNS)
	}
	for i := range min(q.len(), maxNeighbours) {
		other := q.at(i)
		if from, to, ok := interval(other); ok {
			overlap(other.Source, from, to)
		}
	}
	return 1 + float64(shared)/float64(end-start)
}
