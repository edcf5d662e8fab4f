package replay

import (
	"cmp"
	"slices"
	"sort"

	"grayfail/event"
)

// flight is the time a request was in flight, as far as it says.
type flight struct {
	source, id     string
	startNS, endNS int64
}

// flights knows every request of a recording, so that the number in flight
// needs no guess.
type flights map[string]*timeline

// timeline is the requests of one source: their starts and ends sorted, each
// with the sum of all before it.
type timeline struct {
	flights            []flight
	starts, ends       []int64
	startSums, endSums []float64
}

func (f flights) add(r *event.Request) {
	if r.StartNS <= 0 || r.EndNS <= r.StartNS {
		return
	}
	t := f[r.Source]
	if t == nil {
		t = &timeline{}
		f[r.Source] = t
	}
	t.flights = append(t.flights, flight{r.Source, r.ID, r.StartNS, r.EndNS})
}

// settle must be called between the last add and the first concurrency.
func (f flights) settle() {
	for _, t := range f {
		// A line that stands twice is one request.
		slices.SortFunc(t.flights, func(a, b flight) int {
			return cmp.Or(cmp.Compare(a.startNS, b.startNS), cmp.Compare(a.endNS, b.endNS), cmp.Compare(a.id, b.id))
		})
		t.flights = slices.Compact(t.flights)
		for _, x := range t.flights {
			t.starts, t.ends = append(t.starts, x.startNS), append(t.ends, x.endNS)
		}
		slices.Sort(t.ends)
		t.startSums, t.endSums = sums(t.starts), sums(t.ends)
		t.flights = nil
	}
}

func sums(x []int64) []float64 {
	if len(x) == 0 {
		return nil
	}
	out := make([]float64, len(x)+1)
	for i, v := range x {
		out[i+1] = out[i] + float64(v-x[0])
	}
	return out
}

// concurrency is the number in flight, averaged over the request's time; 0
// when its times are not known.
func (f flights) concurrency(r *event.Request) float64 {
	t := f[r.Source]
	if t == nil || r.StartNS <= 0 || r.EndNS <= r.StartNS {
		return 0
	}
	busy := since(t.starts, t.startSums, r.EndNS) - since(t.starts, t.startSums, r.StartNS) -
		since(t.ends, t.endSums, r.EndNS) + since(t.ends, t.endSums, r.StartNS)
	return max(1, busy/float64(r.EndNS-r.StartNS))
}

// since is the time passed from each of the sorted moments before at until at,
// summed.
func since(moments []int64, sums []float64, at int64) float64 {
	n := sort.Search(len(moments), func(i int) bool { return moments[i] >= at })
	if n == 0 {
		return 0
	}
	return float64(at-moments[0])*float64(n) - sums[n]
}
