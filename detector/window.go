package detector

import "slices"

// window is a bounded series of accepted rates with exact order statistics:
// a ring in the order of learning beside the same rates sorted.
type window struct {
	max    int
	ring   []sample
	head   int // index of the oldest
	sorted []float64
}

// sample is one accepted rate and when its request ended.
type sample struct {
	rate  float64
	endNS int64
}

func (w *window) len() int { return len(w.sorted) }

func (w *window) at(i int) *sample { return &w.ring[(w.head+i)%len(w.ring)] }

// add learns a sample; the oldest makes room.
func (w *window) add(s sample) {
	if w.len() == w.max {
		old := w.at(0)
		w.replace(old.rate, s.rate)
		*old = s
		w.head = (w.head + 1) % len(w.ring)
		return
	}
	if w.len() == len(w.ring) {
		w.grow()
	}
	i := lowerBound(w.sorted, s.rate)
	w.sorted = slices.Insert(w.sorted, i, s.rate)
	*w.at(w.len() - 1) = s
}

// replace puts a new rate among the sorted ones for an old one, moving only
// what lies between them.
func (w *window) replace(old, rate float64) {
	i, j := lowerBound(w.sorted, old), lowerBound(w.sorted, rate)
	if i < j {
		j--
		copy(w.sorted[i:j], w.sorted[i+1:])
	} else {
		copy(w.sorted[j+1:i+1], w.sorted[j:i])
	}
	w.sorted[j] = rate
}

func (w *window) grow() {
	bigger := make([]sample, min(w.max, max(16, 2*len(w.ring))))
	for i := range w.len() {
		bigger[i] = *w.at(i)
	}
	w.ring, w.head = bigger, 0
}

func (w *window) dropOldest() {
	w.forget(w.at(0).rate)
	w.head = (w.head + 1) % len(w.ring)
}

// dropNewest forgets the last n samples.
func (w *window) dropNewest(n int) {
	for range n {
		w.forget(w.at(w.len() - 1).rate)
	}
}

func (w *window) forget(rate float64) {
	i := lowerBound(w.sorted, rate)
	w.sorted = slices.Delete(w.sorted, i, i+1)
}

// expire drops samples that ended before t. Samples are nearly in order of
// end; a late one waits behind its younger neighbour.
func (w *window) expire(t int64) {
	for w.len() > 0 && w.at(0).endNS < t {
		w.dropOldest()
	}
}

func (w *window) clear() { w.sorted, w.head = w.sorted[:0], 0 }

// median is exact; of an even number the mean of the middle two. It is 0 when
// there are no samples.
func (w *window) median() float64 {
	n := w.len()
	if n == 0 {
		return 0
	}
	return (w.sorted[(n-1)/2] + w.sorted[n/2]) / 2
}

// quantile is by nearest rank, q in (0, 1].
func (w *window) quantile(q float64) float64 { return nearestRank(w.sorted, q) }
