package detector

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

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
	if len(x) != len(y) {
		return 0, 0, false
	}
	c := column{legs: []string{""}}
	for i, v := range x {
		c.add(i, v)
	}
	found := correlate(y, []column{c}, permutations, seed)
	if len(found) == 0 {
		return 0, 0, false
	}
	return found[0].Rho, found[0].PValue, true
}

// column is one kind of evidence of one leg, or of several that share it,
// beside the scores for which it is known.
type column struct {
	legs     []string
	evidence string
	at       []int // places of the scores, rising
	x        []float64
}

func (c *column) add(at int, x float64) { c.at, c.x = append(c.at, at), append(c.x, x) }

// ranked is a column ready to be correlated.
type ranked struct {
	*column
	x, r  []float64 // ranks, made to sum to 0 and their squares to 1
	place []int     // of each score in x and r, or -1; nil when all are there
	rho   float64
	// asExtreme counts permutations in which this column's correlation was as
	// large, familyExtreme those in which any column's was.
	asExtreme, familyExtreme int
}

// correlate computes the rank correlation of r with every column that varies,
// ordered by leg and evidence. All columns see the same permutations of r, so
// that the largest of their correlations has a distribution too (max-T).
func correlate(r []float64, columns []column, permutations int, seed uint64) []event.Correlation {
	var all []ranked
	for i := range columns {
		if c, ok := rank(&columns[i], r); ok {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(r))))
	order := make([]int, len(r))
	for i := range order {
		order[i] = i
	}
	const rounding = 1e-12
	for range permutations {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		largest := 0.0
		for i := range all {
			c := &all[i]
			t := math.Abs(c.shuffled(order))
			largest = max(largest, t)
			if t >= math.Abs(c.rho)-rounding {
				c.asExtreme++
			}
		}
		for i := range all {
			if largest >= math.Abs(all[i].rho)-rounding {
				all[i].familyExtreme++
			}
		}
	}
	var out []event.Correlation
	for i := range all {
		c := &all[i]
		p := func(extreme int) float64 { return float64(extreme+1) / float64(permutations+1) } // the observed order is one of them
		for _, leg := range c.legs {
			out = append(out, event.Correlation{
				Leg: leg, Evidence: c.evidence, N: len(c.x), Rho: c.rho, PValue: p(c.asExtreme), FamilyPValue: p(c.familyExtreme),
			})
		}
	}
	slices.SortFunc(out, func(a, b event.Correlation) int {
		return cmp.Or(cmp.Compare(a.Leg, b.Leg), cmp.Compare(a.Evidence, b.Evidence))
	})
	return out
}

// rank is false for a column that has too few values or does not vary.
func rank(c *column, r []float64) (ranked, bool) {
	if len(c.at) < minCorrelated || len(c.legs) == 0 {
		return ranked{}, false
	}
	beside := make([]float64, len(c.at))
	for i, at := range c.at {
		beside[i] = r[at]
	}
	out := ranked{column: c, x: ranks(c.x), r: ranks(beside)}
	if !standardize(out.x) || !standardize(out.r) {
		return ranked{}, false
	}
	if len(c.at) < len(r) {
		out.place = make([]int, len(r))
		for i := range out.place {
			out.place[i] = -1
		}
		for i, at := range c.at {
			out.place[at] = i
		}
	}
	for i := range out.x {
		out.rho += out.x[i] * out.r[i]
	}
	out.rho = min(1, max(-1, out.rho))
	return out, true
}

// standardize makes values sum to 0 and their squares to 1.
func standardize(x []float64) bool {
	mean, squares := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for i := range x {
		x[i] -= mean
		squares += x[i] * x[i]
	}
	if squares < 1e-9 {
		return false
	}
	for i := range x {
		x[i] /= math.Sqrt(squares)
	}
	return true
}

// shuffled is the correlation under one order of all scores. Of a column that
// knows some of them only, those keep their order among each other.
func (c *ranked) shuffled(order []int) (sum float64) {
	if c.place == nil {
		for i, at := range order {
			sum += c.x[at] * c.r[i]
		}
		return sum
	}
	i := 0
	for _, at := range order {
		if k := c.place[at]; k >= 0 {
			sum += c.x[k] * c.r[i]
			i++
		}
	}
	return sum
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
	r := make([]float64, len(scores))
	for i := range scores {
		r[i] = scores[i].R
	}
	var columns []column
	for _, name := range names {
		for _, kind := range []string{EvidenceDropFraction, EvidenceRetransmits} {
			columns = append(columns, columnOf(scores, name, kind))
		}
	}
	return correlate(r, columns, permutations, seed)
}

// columnOf takes one kind of evidence of a leg. A leg that a score does not
// mention had none.
func columnOf(scores []Score, leg, kind string) column {
	c := column{legs: []string{leg}, evidence: kind}
	for i := range scores {
		e := Evidence{DropFraction: -1}
		for _, seen := range scores[i].Evidence {
			if seen.Leg == leg {
				e = seen
			}
		}
		switch {
		case kind == EvidenceRetransmits:
			c.add(i, float64(e.Retransmits))
		case e.DropFraction >= 0:
			c.add(i, e.DropFraction)
		}
	}
	return c
}
