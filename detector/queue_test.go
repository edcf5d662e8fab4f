package detector

import (
	"math"
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
			for q.len() > 0 {
				r := q.pop()
				if got := q.concurrency(r, 2e9); r.ID == c.r.ID && math.Abs(got-c.want) > 1e-9 {
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
		}
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
		if q.len() > 50 {
			q.remember(q.pop())
		}
	}
	if len(q.slab) > 100 || cap(q.order) > 1000 || len(q.past) > maxPast {
		t.Errorf("slab %d, order %d, past %d after 10,000 requests of which 50 wait", len(q.slab), cap(q.order), len(q.past))
	}
}
