package twosample

import (
	"math"
	"slices"
)

// Shift is by how much the second sample lies above the first.
type Shift struct {
	// Estimate of Hodges and Lehmann: the median of all differences of a value
	// of the second sample and one of the first.
	Estimate float64 `json:"estimate"`
	// Low and High bound it with 95% confidence: the shifts that a Mann-Whitney
	// test does not reject. Both are nil where the samples are too small for any
	// interval of that confidence.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// Confidence of the interval of a Shift.
const Confidence = 0.95

// MaxDifferences bounds the pairs that HodgesLehmann looks at.
const MaxDifferences = 1 << 24

// HodgesLehmann estimates the shift from x to y. ok is false when one of them
// is empty or there are more than MaxDifferences pairs.
func HodgesLehmann(x, y []float64) (s Shift, ok bool) {
	pairs := len(x) * len(y)
	if pairs == 0 || pairs > MaxDifferences {
		return Shift{}, false
	}
	d := make([]float64, 0, pairs)
	for _, a := range x {
		for _, b := range y {
			d = append(d, b-a)
		}
	}
	slices.Sort(d)
	s.Estimate = (d[(pairs-1)/2] + d[pairs/2]) / 2
	if k := cutOff(len(x), len(y)); k > 0 {
		low, high := d[k-1], d[pairs-k]
		s.Low, s.High = &low, &high
	}
	return s, true
}

// cutOff is the place, from 1 and from both ends, of the differences that bound
// the interval: the smallest k with P(U <= k) above half of the error (Bauer,
// "Constructing confidence sets using rank statistics", JASA 67, 1972). 0 when
// even the whole range would have less confidence.
func cutOff(m, n int) int {
	const tail = (1 - Confidence) / 2
	if m+n > exactUpTo {
		mn := float64(m) * float64(n)
		z := math.Sqrt2 * math.Erfinv(Confidence) // 1.96
		return max(0, int(math.Floor(mn/2-z*math.Sqrt(mn*float64(m+n+1)/12))))
	}
	ranks := make([]int, m+n)
	for i := range ranks {
		ranks[i] = i + 1
	}
	sums := choices(ranks, m)
	all := 0.0
	for _, count := range sums {
		all += count
	}
	below, least := 0.0, m*(m+1)/2 // the rank sum of U = 0
	for k := 0; least+k < len(sums); k++ {
		if below += sums[least+k] / all; below > tail {
			return k
		}
	}
	return 0
}
