package detector

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Against the definition, tick by tick: each tick is shared by the legs that
// are busy in it.
func TestOccupancyAgainstTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const end = 60
		legs := make([]*leg, rapid.IntRange(1, 5).Draw(t, "legs"))
		var busy [5][end]bool
		for i := range legs {
			legs[i] = &leg{name: fmt.Sprint("leg", i)}
			for k := range rapid.IntRange(0, 12).Draw(t, "turns") {
				send := rapid.IntRange(0, end-1).Draw(t, "send")
				length := rapid.IntRange(0, end-send).Draw(t, "length")
				legs[i].turns.put(turn{sendNS: int64(send), endNS: int64(send + length), socket: uint64(k)})
				for tick := send; tick < send+length; tick++ {
					busy[i][tick] = true
				}
			}
		}
		from := rapid.IntRange(0, end).Draw(t, "from")
		to := rapid.IntRange(from, end).Draw(t, "to")
		want := make(map[string]float64)
		total := 0.0
		for tick := from; tick < to; tick++ {
			sharing := 0
			for i := range legs {
				if busy[i][tick] {
					sharing++
				}
			}
			for i := range legs {
				if busy[i][tick] {
					want[legs[i].name] += 1 / float64(sharing)
				}
			}
			total += min(1, float64(sharing))
		}
		var o occupancy
		o.measure(legs, int64(from), int64(to))
		sum := 0.0
		for _, b := range o.busy {
			sum += b.ns
			if math.Abs(b.ns-want[b.leg.name]) > 1e-9 {
				t.Fatalf("%s took %v, want %v", b.leg.name, b.ns, want[b.leg.name])
			}
			delete(want, b.leg.name)
		}
		if len(want) != 0 || math.Abs(sum-total) > 1e-9 {
			t.Fatalf("left out %v; sum %v, want %v", want, sum, total)
		}
	})
}

// The ring finds the turns of a window whatever the order of arrival, and
// keeps one turn for each socket and send time.
func TestTurnRingInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		var ring turnRing
		want := make(map[[2]int64]turn)
		for range n {
			x := turn{
				sendNS: int64(rapid.IntRange(0, 50).Draw(t, "send")), socket: uint64(rapid.IntRange(0, 3).Draw(t, "socket")),
				open: rapid.Bool().Draw(t, "open"), first: int64(rapid.IntRange(0, 1).Draw(t, "first")),
			}
			x.endNS = x.sendNS + int64(rapid.IntRange(0, 30).Draw(t, "length"))
			key := [2]int64{x.sendNS, int64(x.socket)}
			if old, known := want[key]; !known || replaces(&x, &old) {
				want[key] = x
			}
			ring.put(x)
		}
		if ring.n != len(want) {
			t.Fatalf("%d turns, want %d", ring.n, len(want))
		}
		opens, reach := 0, int64(0)
		for i := range ring.n {
			x := *ring.at(i)
			reach = max(reach, x.endNS)
			if x.reachNS != reach {
				t.Fatalf("turn %d reaches %d, want %d", i, x.reachNS, reach)
			}
			if unanswered(&x) {
				opens++
			}
			x.reachNS = 0
			if want[[2]int64{x.sendNS, int64(x.socket)}] != x {
				t.Fatalf("turn %v, want %v", x, want[[2]int64{x.sendNS, int64(x.socket)}])
			}
		}
		if opens != len(ring.waits) {
			t.Fatalf("%d open, counted %d", opens, len(ring.waits))
		}
		from := int64(rapid.IntRange(0, 80).Draw(t, "from"))
		to := from + int64(rapid.IntRange(0, 30).Draw(t, "span"))
		i0, i1 := ring.window(from, to)
		for i := range ring.n {
			if inside := ring.at(i).clip(from, to) > 0; inside && (i < i0 || i >= i1) {
				t.Fatalf("turn %v is in %d..%d, but not in the window", *ring.at(i), from, to)
			}
		}
	})
}

// A request that is written in several sends shows up as an open look at each;
// only the last one is an exchange.
func TestLooksAtARequestBeingWritten(t *testing.T) {
	looks := []turn{
		{sendNS: 100, endNS: 300, socket: 7, open: true},
		{sendNS: 250, endNS: 400, socket: 7, open: true},
		{sendNS: 120, endNS: 500, socket: 8, open: true}, // another socket still waits
		{sendNS: 320, endNS: 700, socket: 7, first: 80},
	}
	permute(len(looks), func(order []int) {
		var ring turnRing
		for _, i := range order {
			x := looks[i]
			if _, gone := ring.supersede(&x); !gone {
				ring.put(x)
			}
		}
		if ring.n != 2 || ring.at(0).socket != 8 || ring.at(1).sendNS != 320 || len(ring.waits) != 1 {
			t.Errorf("order %v: %d turns, first %+v", order, ring.n, *ring.at(0))
		}
	})
}

// permute calls f with every order of n things.
func permute(n int, f func([]int)) {
	order := make([]int, 0, n)
	var rec func()
	rec = func() {
		if len(order) == n {
			f(order)
			return
		}
	next:
		for i := range n {
			for _, j := range order {
				if i == j {
					continue next
				}
			}
			order = append(order, i)
			rec()
			order = order[:len(order)-1]
		}
	}
	rec()
}

// An exchange that ended sooner than an open look at it said takes the reach
// of all turns after it back, in whatever order they come.
func TestReachShrinksWhenALookIsReplaced(t *testing.T) {
	turns := []turn{{socket: 0}, {socket: 1, endNS: 1, open: true}, {socket: 1}, {socket: 2}}
	permute(len(turns), func(order []int) {
		var ring turnRing
		for _, i := range order {
			ring.put(turns[i])
		}
		for i := range ring.n {
			if x := ring.at(i); ring.n != 3 || x.reachNS != 0 {
				t.Fatalf("order %v: turn %d of %d reaches %d, want 0", order, i, ring.n, x.reachNS)
			}
		}
	})
}
