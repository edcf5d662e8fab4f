package detector

import (
	"testing"

	"grayfail/event"
)

func TestConcurrencyBuckets(t *testing.T) {
	for _, c := range []struct {
		inFlight float64
		label    string
	}{
		{0, "1"}, {0.2, "1"}, {1, "1"}, {1.49, "1"}, {1.5, "2"}, {2, "2"}, {2.4, "2"}, {2.6, "3-4"}, {4.4, "3-4"},
		{5, "5-8"}, {8, "5-8"}, {9, "9-16"}, {16, "9-16"}, {17, "17-32"}, {1e6, "524289-1048576"},
	} {
		if got := concurrencyLabel(concurrencyBucket(c.inFlight)); got != c.label {
			t.Errorf("%g in flight are bucket %s, want %s", c.inFlight, got, c.label)
		}
	}
}

// The recordings' requests (36 prompt tokens at most, 32 generated) share a
// stratum; a longer context, another length of output or another concurrency
// do not.
func TestStratumKeys(t *testing.T) {
	view := func(context, output int) *phaseView {
		return &phaseView{phase: event.PhaseDecode, context: context, output: output}
	}
	key := keyOf(view(38, 32), 1)
	for _, c := range []struct {
		name       string
		key        stratumKey
		same, kin  bool // equal key, equal parent
		neighbours bool
	}{
		{"the other prompt", keyOf(view(68, 32), 1), true, true, false},
		{"1,024 tokens", keyOf(view(1024, 32), 1), true, true, false},
		{"long context", keyOf(view(1025, 32), 1), false, false, true},
		{"very long context", keyOf(view(16_000, 32), 1), false, false, false},
		{"short output", keyOf(view(38, 31), 1), false, true, false},
		{"long output", keyOf(view(600, 128), 1), false, true, false},
		{"two at once", keyOf(view(38, 32), 2), false, false, false},
	} {
		if (c.key == key) != c.same || (c.key.parent() == key.parent()) != c.kin {
			t.Errorf("%s: key %v beside %v", c.name, c.key, key)
		}
		near := key.parent()
		near.context++
		if (c.key.parent() == near) != c.neighbours {
			t.Errorf("%s: key %v is no neighbour of %v as it should be", c.name, c.key, key)
		}
	}
	seen := make(map[uint8]int)
	for n := 1; n <= 1<<20; n *= 2 {
		seen[keyOf(view(n, 32), 1).context]++
	}
	if seen[0] != 11 || seen[1] != 2 || seen[2] != 2 {
		t.Errorf("context buckets of powers of two: %v, want 11 in the first and 2 in each other", seen)
	}
}
