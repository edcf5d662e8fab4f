package detector

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"grayfail/event"
)

// Evidence names of the rank correlation.
const (
	EvidenceDropFraction = "drop_fraction"
	EvidenceRetransmits  = "retransmits"
)

// minCorrelated is the fewest requests that make a correlation.
const minCorrelated = 5

// Spearman is the rank correlation of x and y with a two-sided p-value by
// permutations drawn from seed. ok is false with fewer than five pairs or when
// one of them does not vary. It says "associated with": under a load ramp
// without any fault it names an innocent leg nearly always.
func Spearman(x, y []float64, permutations int, seed uint64) (rho, p float64, ok bool) {
	if len(x) != len(y) || len(x) < minCorrelated {
		return 0, 0, false
	}
	rx, ry := ranks(x), ranks(y)
	rho = stat.Correlation(rx, ry, nil)
	if math.IsNaN(rho) {
		return 0, 0, false
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(x))))
	asExtreme := 1 // the observed order is one of them
	for range permutations {
		random.Shuffle(len(rx), func(i, j int) { rx[i], rx[j] = rx[j], rx[i] })
		if math.Abs(stat.Correlation(rx, ry, nil)) >= math.Abs(rho)-1e-12 {
			asExtreme++
		}
	}
	return rho, float64(asExtreme) / float64(permutations+1), true
}

// ranks gives equal values their mean rank.
func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case x[a] < x[b]:
			return -1
		case x[a] > x[b]:
			return 1
		}
		return 0
	})
	out := make([]float64, len(x))
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && x[order[j]] == x[order[i]] {
			j++
		}
		for k := i; k < j; k++ {
			out[order[k]] = float64(i+j-1)/2 + 1
		}
		i = j
	}
	return out
}

// Evidence is what one leg showed during one judged decode phase.
type Evidence struct {
	Leg string
	// Retransmits seen by this host.
	Retransmits int
	// DropFraction of the packets through the leg's device; negative when no
	// queue of it was read.
	DropFraction float64
}

// Score is the normalized rate of one decode phase beside the evidence of all
// legs, for rank correlations.
type Score struct {
	ID, Condition string
	R             float64
	Evidence      []Evidence
}

// scoreRing holds the newest scores of a model.
type scoreRing struct {
	ring []Score
	next int
	// fresh scores since cached was computed.
	fresh  bool
	cached []event.Correlation
}

func (s *scoreRing) slot(max int) *Score {
	s.fresh = true
	if len(s.ring) < max {
		s.ring = append(s.ring, Score{})
		return &s.ring[len(s.ring)-1]
	}
	s.next = (s.next + 1) % len(s.ring)
	return &s.ring[(s.next+len(s.ring)-1)%len(s.ring)]
}

// Correlate computes every correlation of r with one leg's evidence that can
// be computed, ordered by leg and evidence.
func Correlate(scores []Score, permutations int, seed uint64) []event.Correlation {
	legs := make(map[string]bool)
	for i := range scores {
		for _, e := range scores[i].Evidence {
			legs[e.Leg] = true
		}
	}
	names := make([]string, 0, len(legs))
	for name := range legs {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []event.Correlation
	for _, name := range names {
		for _, kind := range []string{EvidenceDropFraction, EvidenceRetransmits} {
			x, r := column(scores, name, kind)
			if rho, p, ok := Spearman(x, r, permutations, seed); ok {
				out = append(out, event.Correlation{Leg: name, Evidence: kind, N: len(x), Rho: rho, PValue: p})
			}
		}
	}
	return out
}

// column pairs one kind of evidence of a leg with r. A leg that a score does
// not mention had none.
func column(scores []Score, leg, kind string) (x, r []float64) {
	for i := range scores {
		var e Evidence
		e.DropFraction = -1
		for _, seen := range scores[i].Evidence {
			if seen.Leg == leg {
				e = seen
			}
		}
		v := float64(e.Retransmits)
		if kind == EvidenceDropFraction {
			if e.DropFraction < 0 {
				continue
			}
			v = e.DropFraction
		}
		x, r = append(x, v), append(r, scores[i].R)
	}
	return x, r
}
