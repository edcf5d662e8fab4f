package twosample

import (
	"math"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

func few(t *rapid.T, name string, most int) []float64 {
	ints := rapid.SliceOfN(rapid.IntRange(0, 6), 1, most).Draw(t, name) // ties abound
	out := make([]float64, len(ints))
	for i, v := range ints {
		out[i] = float64(v)
	}
	return out
}

// u by its definition.
func u(x, y []float64) (sum float64) {
	for _, a := range x {
		for _, b := range y {
			switch {
			case a > b:
				sum++
			case a == b:
				sum += 0.5
			}
		}
	}
	return sum
}

// The exact p, ties included, is that of trying every way to divide the values.
func TestExactPByEnumeration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := few(t, "x", 6), few(t, "y", 6)
		got, _ := MannWhitney(x, y)
		if got.U != u(x, y) {
			t.Fatalf("U = %v, want %v", got.U, u(x, y))
		}
		all := append(append([]float64(nil), x...), y...)
		centre := float64(len(x)*len(y)) / 2
		extreme, ways := 0, 0
		for set := range uint(1) << len(all) {
			if bits.OnesCount(set) != len(x) {
				continue
			}
			var a, b []float64
			for i, v := range all {
				if set>>i&1 == 1 {
					a = append(a, v)
				} else {
					b = append(b, v)
				}
			}
			ways++
			if math.Abs(u(a, b)-centre) >= math.Abs(got.U-centre) {
				extreme++
			}
		}
		if want := float64(extreme) / float64(ways); math.Abs(got.P-want) > 1e-12 {
			t.Fatalf("p = %v, want %d of %d", got.P, extreme, ways)
		}
	})
}

// The interval is what the test does not reject: shifted by anything inside it
// the samples agree, by anything outside they do not.
func TestIntervalInvertsTheTest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfNDistinct(rapid.IntRange(-1000, 1000), 10, 18, rapid.ID[int]).Draw(t, "values")
		// The last two digits of a difference are 10j - i: no two are equal.
		var x, y []float64
		for k, v := range values {
			if i := k / 2; k%2 == 0 {
				x = append(x, float64(100*v+i))
			} else {
				y = append(y, float64(100*v+10*i))
			}
		}
		s, ok := HodgesLehmann(x, y)
		if !ok || s.Low == nil || !(*s.Low <= s.Estimate && s.Estimate <= *s.High) {
			t.Fatalf("%+v", s)
		}
		p := func(shift float64) float64 {
			moved := make([]float64, len(y))
			for i, v := range y {
				moved[i] = v - shift
			}
			test, _ := MannWhitney(x, moved)
			return test.P
		}
		const step = 0.25
		if p(*s.Low+step) <= 1-Confidence || p(*s.High-step) <= 1-Confidence {
			t.Fatalf("%+v: rejected inside", s)
		}
		if p(*s.Low-step) > 1-Confidence || p(*s.High+step) > 1-Confidence {
			t.Fatalf("%+v: not rejected outside", s)
		}
	})
}

// Swapped samples turn the answer around, and nothing else.
func TestSwapped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := few(t, "x", 70), few(t, "y", 70)
		a, _ := MannWhitney(x, y)
		b, _ := MannWhitney(y, x)
		if a.U+b.U != float64(len(x)*len(y)) || math.Abs(a.P-b.P) > 1e-9 || a.Exact != b.Exact {
			t.Fatalf("%+v and %+v", a, b)
		}
		if a.P < 0 || a.P > 1 {
			t.Fatalf("p = %v", a.P)
		}
		s, _ := HodgesLehmann(x, y)
		r, _ := HodgesLehmann(y, x)
		if s.Estimate != -r.Estimate || (s.Low == nil) != (r.Low == nil) || s.Low != nil && *s.Low != -*r.High {
			t.Fatalf("%+v and %+v", s, r)
		}
	})
}

// Where both can be had, the approximation is near the exact value.
func TestApproximationMeetsExact(t *testing.T) {
	var x, y []float64
	for i := range 40 {
		x, y = append(x, float64(i)), append(y, float64(i)*1.3+0.5)
	}
	exact, _ := MannWhitney(x, y)
	_, ties := midranks(x, y)
	if p := normalP(exact.U, 40, 40, ties); math.Abs(p-exact.P) > 0.002 {
		t.Errorf("%v and %v", p, exact.P)
	}
	mn := 51.0 * 50 // just beyond the exact ones
	if k := cutOff(51, 50); math.Abs(float64(k)-(mn/2-1.96*math.Sqrt(mn*102/12))) > 1 {
		t.Errorf("place %d", k)
	}
	if k, next := cutOff(50, 50), cutOff(51, 50); next <= k || next > k+30 {
		t.Errorf("places %d and %d do not join", k, next)
	}
}

func TestNothingToCompare(t *testing.T) {
	one := []float64{1}
	if _, ok := MannWhitney(nil, one); ok {
		t.Error("an empty sample was tested")
	}
	if _, ok := HodgesLehmann(one, nil); ok {
		t.Error("an empty sample was shifted")
	}
	if got, _ := MannWhitney(make([]float64, 200), make([]float64, 100)); got.P != 1 || got.Exact {
		t.Errorf("%+v, want p = 1 of values that are all equal", got)
	}
	if s, ok := HodgesLehmann(one, []float64{3}); !ok || s.Estimate != 2 || s.Low != nil || s.High != nil {
		t.Errorf("%+v, want a shift of 2 without an interval", s)
	}
}

func BenchmarkExact(b *testing.B) {
	var x, y []float64
	for i := range 50 {
		x, y = append(x, float64(i)), append(y, float64(i)+0.5)
	}
	for b.Loop() {
		MannWhitney(x, y)
	}
}
