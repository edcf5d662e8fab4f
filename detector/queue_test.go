package detector

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"grayfail/event"
)

func request(source, id string, startNS, endNS int64) event.Request {
	return event.Request{ID: id, Source: source, Model: "m", StartNS: startNS, EndNS: endNS, Outcome: event.OutcomeOK}
}

func TestConcurrencyFromOverlap(t *testing.T) {
	given := request("main", "given", 100, 200)
	given.Concurrency = 3.5
	byRate := request("main", "by rate", 0, 200e9)
	byRate.GeneratedTokens, byRate.DecodeRate = 100, 1 // from 100 s to 200 s
	for _, c := range []struct {
		name   string
		r      event.Request
		others []event.Request
		want   float64
	}{
		{"alone", request("main", "a", 100, 200), nil, 1},
		{"beside an equal one", request("main", "a", 100, 200), []event.Request{request("main", "b", 100, 200)}, 2},
		{"half of the time", request("main", "a", 100, 200), []event.Request{request("main", "b", 150, 400)}, 1.5},
		{"one after the other", request("main", "a", 100, 200), []event.Request{request("main", "b", 200, 300), request("main", "c", 0, 100)}, 1},
		{"at another source", request("main", "a", 100, 200), []event.Request{request("side", "b", 100, 200)}, 1},
		{"within a longer one", request("main", "a", 100, 200), []event.Request{request("main", "b", 1, 900)}, 2},
		{"what the source says holds", given, []event.Request{request("main", "b", 100, 200)}, 3.5},
		{"no times", request("main", "a", 0, 200), []event.Request{request("main", "b", 1, 900)}, 1},
		{"start from rate and count", byRate, []event.Request{request("main", "b", 150e9, 200e9)}, 1.5},
	} {
		all := append([]event.Request{c.r}, c.others...)
		permute(len(all), func(order []int) {
			var q queue
			for _, i := range order {
				q.push(&all[i])
			}
			q.settle()
			for q.len() > 0 {
				r := q.pop()
				if got := q.concurrency(r); r.ID == c.r.ID && math.Abs(got-c.want) > 1e-9 {
					t.Errorf("%s, order %v: %v in flight, want %v", c.name, order, got, c.want)
				}
				q.remember(r)
			}
		})
	}
}

func TestQueueOrderAndDuplicates(t *testing.T) {
	all := []event.Request{request("s", "a", 5, 30), request("s", "b", 4, 20), request("s", "c", 3, 20), request("s", "c", 3, 20)}
	permute(len(all), func(order []int) {
		var q queue
		taken := 0
		for _, i := range order {
			if q.push(&all[i]) {
				taken++
			}
			if i%2 == 0 { // now and then
				taken -= q.settle()
			}
		}
		taken -= q.settle()
		got := ""
		for q.len() > 0 {
			got += q.pop().ID
		}
		if got != "cba" || taken != 3 {
			t.Errorf("order %v: %q with %d taken, want cba and 3", order, got, taken)
		}
	})
}

// The queue reuses its memory.
func TestQueueStaysSmall(t *testing.T) {
	var q queue
	for i := range int64(10_000) {
		r := request("s", "x", i+1, i+2)
		q.push(&r)
		if q.settle(); q.len() > 50 {
			q.remember(q.pop())
		}
	}
	if len(q.slab) > 100 || cap(q.order) > 1000 || len(q.past) > maxPast {
		t.Errorf("slab %d, order %d, past %d after 10,000 requests of which 50 wait", len(q.slab), cap(q.order), len(q.past))
	}
}

// How many were in flight is exact however many there are, and costs no more
// when they come newest first.
func TestConcurrencyOfThousands(t *testing.T) {
	const n, each, gap = 20_000, int64(2e9), int64(100e3) // 20,000 at once
	base := int64(1_800_000_000e9)
	var newest, oldest queue
	for i := range int64(n) {
		r := request("s", fmt.Sprint(i), base+i*gap, base+i*gap+each)
		oldest.push(&r)
		r = request("s", fmt.Sprint(n-1-i), base+(n-1-i)*gap, base+(n-1-i)*gap+each)
		newest.push(&r)
	}
	newest.settle()
	oldest.settle()
	for i := range n {
		a, b := newest.pop(), oldest.pop()
		if *a != *b {
			t.Fatalf("%s and %s come first", a.ID, b.ID)
		}
		if i != n/2 {
			continue
		}
		// All others overlap it: by 2 s less the distance of their starts.
		want := 1.0
		for k := range int64(n) {
			if distance := max(k-n/2, n/2-k) * gap; k != n/2 {
				want += float64(each-distance) / float64(each)
			}
		}
		if got, same := newest.concurrency(a), oldest.concurrency(b); math.Abs(got-want) > 1e-3 || got != same {
			t.Errorf("%v and %v in flight, want %v", got, same, want)
		}
	}
}

// A source that says how many are in flight and then no longer does is known
// from its requests before.
func TestConcurrencyFromThoseThatSaidIt(t *testing.T) {
	var q queue
	for i := range int64(3) {
		r := request("s", fmt.Sprint(i), 100, 200+i)
		r.Concurrency = 7
		q.push(&r)
	}
	q.settle()
	first := q.pop()
	q.remember(first)
	r := request("s", "silent", 100, 200)
	q.push(&r)
	q.settle()
	if got := q.concurrency(&r); got != 4 {
		t.Errorf("%v in flight, want 4", got)
	}
}

// What is kept of requests that have ended is bounded, and sources make room.
func TestFlightsAreBounded(t *testing.T) {
	var q queue
	now := int64(1_800_000_000e9)
	for i := range int64(200_000) {
		now += 1e5
		r := request(fmt.Sprint("s", i/20%100), fmt.Sprint(i), now-1e9, now)
		q.push(&r)
		if i%100 == 0 {
			q.settle()
			for q.len() > 0 {
				q.remember(q.pop())
			}
		}
	}
	total := 0
	for _, l := range q.flights.bySource {
		total += len(l.ends)
		if len(l.starts) != len(l.ends) || !slices.IsSorted(l.starts) || !slices.IsSorted(l.ends) {
			t.Error("starts and ends are not in order")
		}
	}
	if len(q.flights.bySource) != maxFlightLines || total > maxFlights || q.flights.freed == 0 {
		t.Errorf("%d sources with %d requests, %d freed", len(q.flights.bySource), total, q.flights.freed)
	}
}
