package detector

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"grayfail/event"
)

// queue holds requests until their neighbours are known, ordered by end; the
// order is total, so that requests of equal times are judged alike however
// they arrive. Arrivals are put in order all at once, by settle, so that those
// that come newest first cost no more than others.
type queue struct {
	slab  []event.Request
	free  []int32
	fresh []int32 // indices into slab, as they came
	order []int32 // indices into slab, from head on
	head  int

	// past are the intervals of judged requests, to know one that comes again.
	past     []past
	pastHead int

	flights flights
}

type past struct {
	source, id     string
	startNS, endNS int64
}

const (
	maxPast = 4096
	// maxLate is how many requests that ended later one that comes again may
	// be behind.
	maxLate = 1024
)

func (q *queue) len() int { return len(q.order) - q.head + len(q.fresh) }

// at returns the i-th earliest; pop takes it. Both need settle before.
func (q *queue) at(i int) *event.Request { return &q.slab[q.order[q.head+i]] }

// compare is a total order, by end first: most are told apart by it.
func compare(a, b *event.Request) int {
	if a.EndNS != b.EndNS {
		return cmp.Compare(a.EndNS, b.EndNS)
	}
	if a.StartNS != b.StartNS {
		return cmp.Compare(a.StartNS, b.StartNS)
	}
	guessed := func(r *event.Request) int {
		if r.LowConfidence {
			return 1
		}
		return 0
	}
	return cmp.Or(
		strings.Compare(a.Source, b.Source), strings.Compare(a.Model, b.Model), strings.Compare(a.ID, b.ID),
		cmp.Compare(a.FirstTokenNS, b.FirstTokenNS), cmp.Compare(a.DecodeRate, b.DecodeRate), cmp.Compare(a.PrefillRate, b.PrefillRate),
		cmp.Compare(a.GeneratedTokens, b.GeneratedTokens), cmp.Compare(a.PromptTokens, b.PromptTokens),
		strings.Compare(string(a.Outcome), string(b.Outcome)), strings.Compare(a.Condition, b.Condition),
		cmp.Compare(a.CachedTokens, b.CachedTokens), cmp.Compare(a.Concurrency, b.Concurrency),
		strings.Compare(a.Fingerprint, b.Fingerprint), cmp.Compare(a.Status, b.Status), cmp.Compare(guessed(a), guessed(b)),
	)
}

// push adds a request. It returns false for one that was judged lately; one
// that waits already is found by settle.
func (q *queue) push(r *event.Request) bool {
	if q.judged(r) {
		return false
	}
	var slot int32
	if n := len(q.free); n > 0 {
		slot, q.free = q.free[n-1], q.free[:n-1]
		q.slab[slot] = *r
	} else {
		slot = int32(len(q.slab))
		q.slab = append(q.slab, *r)
	}
	q.fresh = append(q.fresh, slot)
	return true
}

// settle puts what came since the last one in order, and returns how many of
// them wait already: those are dropped.
func (q *queue) settle() (duplicates int) {
	if len(q.fresh) == 0 {
		return 0
	}
	if q.head > 64 && q.head > len(q.order)/2 {
		q.order = q.order[:copy(q.order, q.order[q.head:])]
		q.head = 0
	}
	slices.SortFunc(q.fresh, func(a, b int32) int { return compare(&q.slab[a], &q.slab[b]) })
	duplicates = q.compact()
	for _, slot := range q.fresh {
		q.flights.add(&q.slab[slot], q)
	}
	q.flights.settle()
	// From the back: what is in order already moves only if it is later.
	i, j := len(q.order)-1, len(q.fresh)-1
	q.order = append(q.order, q.fresh...)
	for k := len(q.order) - 1; j >= 0; k-- {
		if i >= q.head && compare(&q.slab[q.fresh[j]], &q.slab[q.order[i]]) < 0 {
			q.order[k] = q.order[i]
			i--
		} else {
			q.order[k] = q.fresh[j]
			j--
		}
	}
	q.fresh = q.fresh[:0]
	return duplicates
}

// compact drops from fresh, which is sorted, what is there twice or waits
// already.
func (q *queue) compact() (duplicates int) {
	kept := q.fresh[:0]
	waiting := q.order[q.head:]
	for _, slot := range q.fresh {
		r := &q.slab[slot]
		twin := r.ID != "" && len(kept) > 0 && q.slab[kept[len(kept)-1]] == *r
		if r.ID != "" && !twin && len(waiting) > 0 {
			at := sort.Search(len(waiting), func(i int) bool { return compare(&q.slab[waiting[i]], r) >= 0 })
			twin = at < len(waiting) && q.slab[waiting[at]] == *r
		}
		if twin {
			duplicates++
			q.free = append(q.free, slot)
			continue
		}
		kept = append(kept, slot)
	}
	q.fresh = kept
	return duplicates
}

// judged looks for r among the past ones. Those are in the order of their ends
// but for late ones, so a request that ends last is found new at once.
func (q *queue) judged(r *event.Request) bool {
	start, end, ok := interval(r)
	if !ok || r.ID == "" {
		return false
	}
	for i := range min(len(q.past), maxLate) {
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
func (q *queue) concurrency(r *event.Request) float64 {
	if r.Concurrency > 0 {
		return max(1, r.Concurrency)
	}
	return q.flights.during(r)
}

// forgetPast drops what was on another line of time.
func (q *queue) forgetPast() { q.past, q.pastHead, q.flights = nil, 0, flights{} }
