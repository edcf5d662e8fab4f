package detector

import (
	"slices"
	"sort"
	"time"

	"grayfail/event"
)

// flights knows when the requests of a source were in flight, for sources that
// do not say how many were. The others cost nothing.
type flights struct {
	bySource map[string]*flightLine
	freed    uint64
}

const (
	// maxFlightLines sources share maxFlights requests.
	maxFlightLines = 64
	maxFlights     = 1 << 16
	// flightSpan is how long a request counts that has ended: the longest
	// request that may have run beside it.
	flightSpan = 10 * time.Minute
)

// flightLine has the starts and the ends of a source's requests, each sorted,
// with the sum of all before it: how many were in flight, summed over any
// stretch of time, is then four look-ups. Which end belongs to which start does
// not matter for that.
type flightLine struct {
	starts, ends       []int64
	newStarts, newEnds []int64
	startSums, endSums []float64 // of the differences to the first
}

// add takes one request. The first one of a source that does not say how many
// were in flight brings those known of it along.
func (f *flights) add(r *event.Request, q *queue) {
	line := f.bySource[r.Source]
	if line == nil {
		if r.Concurrency > 0 {
			return
		}
		if _, _, ok := interval(r); !ok {
			return
		}
		line = f.line(r.Source)
		for i := range q.past {
			if p := &q.past[i]; p.source == r.Source {
				line.add(p.startNS, p.endNS)
			}
		}
		for _, slot := range q.order[q.head:] {
			if o := &q.slab[slot]; o.Source == r.Source {
				line.request(o)
			}
		}
		for _, slot := range q.fresh { // those before r; r itself comes below
			o := &q.slab[slot]
			if o == r {
				break
			}
			if o.Source == r.Source {
				line.request(o)
			}
		}
	}
	line.request(r)
}

// line makes room for one more source: that which has been silent for longest
// goes.
func (f *flights) line(source string) *flightLine {
	if f.bySource == nil {
		f.bySource = make(map[string]*flightLine)
	}
	if len(f.bySource) == maxFlightLines {
		oldest, oldestNS := "", int64(0)
		for name, line := range f.bySource {
			if at := line.newest(); oldest == "" || at < oldestNS || at == oldestNS && name < oldest {
				oldest, oldestNS = name, at
			}
		}
		delete(f.bySource, oldest)
		f.freed++
	}
	line := &flightLine{}
	f.bySource[source] = line
	return line
}

func (l *flightLine) newest() int64 {
	if n := len(l.ends); n > 0 {
		return l.ends[n-1]
	}
	return 0
}

func (l *flightLine) request(r *event.Request) {
	if start, end, ok := interval(r); ok {
		l.add(start, end)
	}
}

func (l *flightLine) add(startNS, endNS int64) {
	l.newStarts, l.newEnds = append(l.newStarts, startNS), append(l.newEnds, endNS)
}

// settle must be called between the last add and the first during.
func (f *flights) settle() {
	for _, l := range f.bySource {
		if len(l.newEnds) > 0 {
			l.settle(maxFlights / max(1, len(f.bySource)))
		}
	}
}

func (l *flightLine) settle(most int) {
	l.starts, l.ends = merge(l.starts, l.newStarts), merge(l.ends, l.newEnds)
	l.newStarts, l.newEnds = l.newStarts[:0], l.newEnds[:0]
	// The k earliest starts and ends may go together: from the last of them on
	// as many are in flight as before.
	n := len(l.ends)
	k := max(n-most, sort.Search(n, func(i int) bool { return l.ends[i] >= l.ends[n-1]-int64(flightSpan) }))
	if k > n/8 || n > most {
		l.starts, l.ends = slices.Delete(l.starts, 0, k), slices.Delete(l.ends, 0, k)
	}
	l.startSums, l.endSums = sums(l.startSums, l.starts), sums(l.endSums, l.ends)
}

// merge sorts fresh and puts it among sorted, moving only what is later.
func merge(sorted, fresh []int64) []int64 {
	slices.Sort(fresh)
	i, j := len(sorted)-1, len(fresh)-1
	sorted = append(sorted, fresh...)
	for k := len(sorted) - 1; j >= 0; k-- {
		if i >= 0 && sorted[i] > fresh[j] {
			sorted[k] = sorted[i]
			i--
		} else {
			sorted[k] = fresh[j]
			j--
		}
	}
	return sorted
}

func sums(into []float64, x []int64) []float64 {
	into = append(into[:0], 0)
	total := 0.0
	for _, v := range x {
		total += float64(v - x[0])
		into = append(into, total)
	}
	return into
}

// during is how many were in flight during r, averaged over its time; 1 when
// that cannot be known.
func (f *flights) during(r *event.Request) float64 {
	start, end, ok := interval(r)
	l := f.bySource[r.Source]
	if !ok || l == nil {
		return 1
	}
	busy := passed(l.starts, l.startSums, end) - passed(l.starts, l.startSums, start) -
		passed(l.ends, l.endSums, end) + passed(l.ends, l.endSums, start)
	return max(1, busy/float64(end-start))
}

// passed is the time from each of the sorted moments before at until at, summed.
func passed(moments []int64, sums []float64, at int64) float64 {
	n := sort.Search(len(moments), func(i int) bool { return moments[i] >= at })
	if n == 0 {
		return 0
	}
	return float64(at-moments[0])*float64(n) - sums[n]
}
