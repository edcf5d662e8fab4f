package detector

import (
	"math"
	"slices"
)

// nearestRank returns the q-quantile of sorted values by nearest rank; 0 for
// none.
func nearestRank[T int64 | float32 | float64](sorted []T, q float64) T {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// medianOf sorts values in place and returns the median; 0 for none.
func medianOf[T int64 | float32 | float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// lowerBound is the first position in sorted whose value is at least x. The
// values are rates: no NaN, which slices.BinarySearch would look out for at
// each step.
func lowerBound(sorted []float64, x float64) int {
	lo, hi := 0, len(sorted)
	for lo < hi {
		if mid := (lo + hi) / 2; sorted[mid] < x {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
