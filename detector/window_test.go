package detector

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The window against its definition: the newest samples in a plain slice,
// sorted anew each time.
func TestWindowAgainstPlainSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 40).Draw(t, "max")
		w := window{max: limit}
		var plain []sample
		steps := rapid.IntRange(1, 120).Draw(t, "steps")
		for i := range steps {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 8:
				n := rapid.IntRange(0, len(plain)).Draw(t, "drop")
				w.dropNewest(n)
				plain = plain[:len(plain)-n]
			case 9:
				until := int64(rapid.IntRange(0, i).Draw(t, "until"))
				w.expire(until)
				for len(plain) > 0 && plain[0].endNS < until {
					plain = plain[1:]
				}
			default:
				s := sample{rate: float64(rapid.IntRange(1, 9).Draw(t, "rate")), endNS: int64(i)}
				w.add(s)
				plain = append(plain, s)
				if len(plain) > limit {
					plain = plain[1:]
				}
			}
			var rates []float64
			for i, s := range plain {
				if *w.at(i) != s {
					t.Fatalf("sample %d is %v, want %v", i, *w.at(i), s)
				}
				rates = append(rates, s.rate)
			}
			if w.len() != len(plain) || w.median() != medianOf(rates) {
				t.Fatalf("%d samples with median %v, want %d with %v", w.len(), w.median(), len(plain), medianOf(rates))
			}
		}
	})
}

func TestMedianAndQuantiles(t *testing.T) {
	w := window{max: 100}
	order := rand.New(rand.NewPCG(1, 1)).Perm(10)
	for i, v := range order {
		w.add(sample{float64(v + 1), int64(i)})
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"median of 1..10", w.median(), 5.5},
		{"p10", w.quantile(0.1), 1},
		{"p11", w.quantile(0.11), 2},
		{"p84", w.quantile(0.84), 9},
		{"p100", w.quantile(1), 10},
		{"median of nothing", (&window{}).median(), 0},
		{"quantile of nothing", (&window{}).quantile(0.5), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
	if !slices.IsSorted(w.sorted) {
		t.Error("not sorted")
	}
}
