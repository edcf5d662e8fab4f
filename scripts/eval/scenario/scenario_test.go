package scenario

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"grayfail/event"
)

func read(t *testing.T) *Recordings {
	t.Helper()
	r, err := Read("../../../detector/testdata/recordings")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func named(t *testing.T, name string) Scenario {
	t.Helper()
	for _, s := range List() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no scenario %q", name)
	return Scenario{}
}

// What is drawn from the recordings: 5% of packets lost mark a small reply
// about as often as a packet is lost, a large one more often, and some with the
// silence of a timeout.
func TestMarksOfLoss(t *testing.T) {
	r := read(t)
	for size, want := range map[int][2]float64{0: {0.03, 0.1}, 2: {0.05, 0.2}} {
		if m := r.lost[size]; m.share < want[0] || m.share > want[1] {
			t.Errorf("size %d: %.3f of %d marked, want %.2f to %.2f", size, m.share, len(m.pool), want[0], want[1])
		}
	}
	silences := 0
	for _, m := range r.lost[2].pool {
		if m.stall >= 190*time.Millisecond {
			silences++
		}
	}
	if silences < 40 {
		t.Errorf("%d silences of a timeout", silences)
	}
}

// The same seed gives the same timeline, another seed another one.
func TestSeeds(t *testing.T) {
	r, s := read(t), named(t, LossyRamp)
	a, b, c := r.Make(s, 3), r.Make(s, 3), r.Make(s, 4)
	if !reflect.DeepEqual(a, b) {
		t.Error("two timelines of one seed differ")
	}
	if reflect.DeepEqual(a.Truths, c.Truths) {
		t.Error("two seeds give one timeline")
	}
}

// Truth is measured: without a fault the median request runs at 1, with one
// that takes the rate to 0.4 at 0.4, and the fault has the lost time.
func TestTruth(t *testing.T) {
	r := read(t)
	for seed := range uint64(6) {
		tl := r.Make(named(t, LongFault), seed)
		var calm, faulty []float64
		for i := range tl.Truths {
			x := &tl.Truths[i]
			if x.Condition == "fault" {
				faulty = append(faulty, x.R)
				if x.FaultShare < 0.5 {
					t.Errorf("seed %d, %s: the fault has %.2f of the lost time", seed, x.ID, x.FaultShare)
				}
			} else {
				calm = append(calm, x.R)
			}
		}
		if m := medianOf(calm); m < 0.93 || m > 1.07 {
			t.Errorf("seed %d: %.2f without the fault", seed, m)
		}
		if m := medianOf(faulty); m < 0.33 || m > 0.47 {
			t.Errorf("seed %d: %.2f with it", seed, m)
		}
	}
}

// Every scenario keeps what a collector could have seen: the first byte before
// the last, the ACK before either, nothing before its time.
func TestPlausible(t *testing.T) {
	r := read(t)
	for _, s := range List() {
		tl := r.Make(s, 1)
		last, requests := int64(0), 0
		for _, item := range tl.Items {
			if item.AtNS < last {
				t.Fatalf("%s: out of order", s.Name)
			}
			last = item.AtNS
			switch x := item.What.(type) {
			case event.Exchange:
				if x.FirstByte > x.Duration || x.Ack > x.FirstByte && !x.Open || x.Stall > x.Duration || x.SendNS+int64(x.Duration) != item.AtNS {
					t.Fatalf("%s: %+v", s.Name, x)
				}
			case event.Request:
				requests++
				if x.FirstTokenNS < x.StartNS || x.EndNS < x.FirstTokenNS || x.GeneratedTokens < 1 {
					t.Fatalf("%s: %+v", s.Name, x)
				}
			}
		}
		if requests != len(tl.Truths) || requests < 30 {
			t.Errorf("%s: %d requests, %d truths", s.Name, requests, len(tl.Truths))
		}
		for _, a := range tl.Accept {
			if a.Cause.NamesPath() != (a.Leg != "") {
				t.Errorf("%s: accepts %+v", s.Name, a)
			}
		}
	}
}

func medianOf(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
