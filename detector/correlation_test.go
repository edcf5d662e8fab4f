package detector

import (
	"fmt"
	"math"
	"testing"

	"grayfail/event"
)

func TestSpearman(t *testing.T) {
	for _, c := range []struct {
		name string
		x, y []float64
		rho  float64
		ok   bool
	}{
		{"rising", []float64{1, 2, 3, 4, 5}, []float64{10, 20, 25, 70, 71}, 1, true},
		{"falling", []float64{1, 2, 3, 4, 5, 6}, []float64{6, 5, 4, 3, 2, 1}, -1, true},
		// The example of the usual textbooks: IQ and hours of TV, rho = -29/165.
		{"textbook", []float64{106, 100, 86, 101, 99, 103, 97, 113, 112, 110}, []float64{7, 27, 2, 50, 28, 29, 20, 12, 6, 17}, -29.0 / 165, true},
		{"ties share their mean rank", []float64{1, 1, 2, 2, 3}, []float64{1, 1, 2, 2, 3}, 1, true},
		{"too few", []float64{1, 2, 3, 4}, []float64{1, 2, 3, 4}, 0, false},
		{"nothing varies", []float64{0, 0, 0, 0, 0}, []float64{1, 2, 3, 4, 5}, 0, false},
	} {
		rho, p, ok := Spearman(c.x, c.y, 999, 1)
		if ok != c.ok || math.Abs(rho-c.rho) > 1e-12 {
			t.Errorf("%s: rho %v, %v; want %v, %v", c.name, rho, ok, c.rho, c.ok)
		}
		if ok && (p <= 0 || p > 1) {
			t.Errorf("%s: p %v", c.name, p)
		}
		_, again, _ := Spearman(c.x, c.y, 999, 1)
		if again != p {
			t.Errorf("%s: p %v, then %v", c.name, p, again)
		}
	}
}

// Ten pairs in order: two of 10! orders are as extreme.
func TestPermutationP(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	if _, p, _ := Spearman(x, x, 999, 1); p != 0.001 {
		t.Errorf("p %v, want 1/1000: no shuffle of 999 is as extreme", p)
	}
	// Without any relation p is uniform: about half of them below 0.5.
	below := 0
	for seed := range uint64(100) {
		y := make([]float64, len(x))
		for i := range y {
			y[i] = float64(mix(seed*100+uint64(i)) % 1000)
		}
		if _, p, _ := Spearman(x, y, 199, seed); p < 0.5 {
			below++
		}
	}
	if below < 30 || below > 70 {
		t.Errorf("%d of 100 p-values below 0.5 without any relation", below)
	}
}

func TestCorrelateMissingEvidence(t *testing.T) {
	var scores []Score
	for i := range 12 {
		s := Score{R: 1 - float64(i)/20}
		if i > 5 { // the leg appears late: it had no retransmits before
			s.Evidence = []Evidence{{Leg: "b", Retransmits: i, DropFraction: float64(i) / 100}}
		}
		s.Evidence = append(s.Evidence, Evidence{Leg: "a", DropFraction: -1})
		scores = append(scores, s)
	}
	got := Correlate(scores, 99, 1)
	if len(got) != 2 {
		t.Fatalf("%+v, want the two of leg b: a has no queue and no retransmit that varies", got)
	}
	if got[0].Evidence != EvidenceDropFraction || got[0].N != 6 || got[1].Evidence != EvidenceRetransmits || got[1].N != 12 {
		t.Errorf("%+v, want drop_fraction over 6 and retransmits over 12", got)
	}
	if got[0].Rho > -0.99 || got[1].Rho > -0.9 {
		t.Errorf("%+v, want both strongly negative", got)
	}
}

// Two sources of one model give one correlation for each leg and evidence: that
// of the source with more requests, of equals that of the first by name.
func TestCorrelationsOfTwoSources(t *testing.T) {
	for _, c := range []struct {
		first, second string // in order of appearance
		n             [2]int
		n0            int
		rising        bool // as the retransmits of "first" go with r
	}{
		{"a", "b", [2]int{20, 12}, 20, true},
		{"a", "b", [2]int{12, 20}, 20, false},
		{"b", "a", [2]int{15, 15}, 15, false},
		{"a", "b", [2]int{15, 15}, 15, true},
	} {
		d, shared := New(DefaultConfig()), &leg{name: "leg"}
		for k, source := range []string{c.first, c.second} {
			m := &model{decode: newSeries(source, "m", event.PhaseDecode)}
			d.order = append(d.order, m)
			for i := range c.n[k] {
				sc := m.decode.scores.slot(64)
				sc.r = float64(i)
				if i > 0 {
					sc.add(legResent{shared, uint16(i)})
				}
				if k == 1 {
					sc.r = -sc.r
				}
			}
		}
		for range 2 { // computed, and from the cache
			got := d.Correlations()
			if len(got) != 1 || got[0].N != c.n0 || (got[0].Rho > 0) != c.rising || got[0].Model != "m" {
				t.Errorf("%s: %+v, want one of %d, rising %v", fmt.Sprint(c.first, c.second, c.n), got, c.n0, c.rising)
			}
		}
	}
}
