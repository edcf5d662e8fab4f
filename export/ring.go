package export

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"grayfail/event"
)

// ring keeps the newest max rows.
type ring struct {
	max  int
	mu   sync.Mutex
	rows []event.Row
	next int // where the next one goes once rows is full
}

// maxTextRunes bounds text of a remembered row: 2048 rows of client-chosen ids
// must not be a way to fill the memory.
const maxTextRunes = 1024

func (q *ring) add(r event.Row) {
	r = rememberable(r)
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.rows) < q.max {
		q.rows = append(q.rows, r)
		return
	}
	q.rows[q.next] = r
	q.next = (q.next + 1) % q.max
}

// rememberable makes a copy that is ours, that JSON can write and whose size
// is bounded.
func rememberable(r event.Row) event.Row {
	for _, text := range []*string{&r.ID, &r.Source, &r.Model, &r.Condition, &r.Detail, &r.Leg} {
		*text = cut(*text, maxTextRunes)
	}
	for _, v := range []**float64{&r.Rate, &r.Baseline, &r.R} {
		if *v != nil && !finite(**v) {
			*v = nil
		}
	}
	r.ExcessMS, r.LocalMS = orZero(r.ExcessMS), orZero(r.LocalMS)
	r.LegsMS = maps.Clone(r.LegsMS)
	if r.LegsMS == nil {
		r.LegsMS = map[string]float64{}
	}
	for leg, ms := range r.LegsMS {
		r.LegsMS[leg] = orZero(ms)
	}
	return r
}

func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	return clean(s, max)
}

func orZero(v float64) float64 {
	if !finite(v) {
		return 0
	}
	return v
}

// newest gives up to limit admitted rows, newest first; never nil.
func (q *ring) newest(limit int, admits func(*event.Row) bool) []event.Row {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]event.Row, 0, min(limit, len(q.rows)))
	for i := range q.rows {
		if len(out) == limit {
			break
		}
		// q.next is the oldest, the one before it the newest.
		at := (q.next + 2*len(q.rows) - 1 - i) % len(q.rows)
		if row := &q.rows[at]; admits(row) {
			out = append(out, *row)
		}
	}
	return out
}

// newestFirst puts open episodes before closed ones, then the latest start
// first.
func newestFirst(episodes []event.Episode) {
	slices.SortStableFunc(episodes, func(x, y event.Episode) int {
		if xOpen, yOpen := x.EndNS == 0, y.EndNS == 0; xOpen != yOpen {
			if xOpen {
				return -1
			}
			return 1
		}
		return cmp.Compare(y.StartNS, x.StartNS)
	})
}
