package twosample

import (
	"cmp"
	"math"
	"slices"
)

// exactUpTo is the size of both samples together up to which p is exact: 50 x
// 50 runs are counted in some milliseconds.
const exactUpTo = 100

// Test is the result of a Mann-Whitney U test (Wilcoxon rank sum test).
type Test struct {
	// U counts the pairs in which the value of the first sample is the larger
	// one; equal ones count half.
	U float64 `json:"u"`
	// P is two-sided: under the hypothesis that both come from one distribution.
	P float64 `json:"p_value"`
	// Exact p is counted over all ways to divide the values, ties included;
	// otherwise it is the normal approximation, corrected for ties and for
	// continuity.
	Exact bool `json:"exact"`
}

// MannWhitney tests whether one of two samples tends to the larger values. ok
// is false when one of them is empty.
func MannWhitney(x, y []float64) (t Test, ok bool) {
	if len(x) == 0 || len(y) == 0 {
		return Test{}, false
	}
	doubled, ties := midranks(x, y)
	w := 0
	for _, r := range doubled[:len(x)] {
		w += r
	}
	m := len(x)
	t.U = float64(w-m*(m+1)) / 2
	if len(doubled) <= exactUpTo {
		t.P, t.Exact = exactP(doubled, m, w), true
	} else {
		t.P = normalP(t.U, m, len(y), ties)
	}
	return t, true
}

// midranks are twice the mean ranks of x and then y in the joint order, which
// makes them whole numbers, and the sum of t^3-t over the groups of t ties.
func midranks(x, y []float64) (doubled []int, ties float64) {
	all := slices.Concat(x, y)
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(all[a], all[b]) })
	doubled = make([]int, len(all))
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && all[order[j]] == all[order[i]] {
			j++
		}
		for _, at := range order[i:j] {
			doubled[at] = i + 1 + j
		}
		t := float64(j - i)
		ties += t*t*t - t
		i = j
	}
	return doubled, ties
}

// exactP is the part of all choices of m ranks whose sum is at least as far
// from the expected one as w (the shift algorithm of Streitberg and Röhmel,
// 1986: it needs no special case for ties).
func exactP(doubled []int, m, w int) float64 {
	total := 0
	for _, r := range doubled {
		total += r
	}
	sums := choices(doubled, m)
	// The expected sum is total*m/N; both sides times N stay whole numbers.
	n := len(doubled)
	far := abs(w*n - total*m)
	extreme, all := 0.0, 0.0
	for s, count := range sums {
		all += count
		if abs(s*n-total*m) >= far {
			extreme += count
		}
	}
	return min(1, extreme/all)
}

func abs(i int) int { return max(i, -i) }

// choices counts by their sum the ways to choose m of the ranks. The counts are
// floating-point numbers: up to C(100,50) = 1e29 they keep 15 digits.
func choices(ranks []int, m int) []float64 {
	largest := 0
	for _, r := range ranks {
		largest += r
	}
	of := make([][]float64, m+1)
	for k := range of {
		of[k] = make([]float64, largest+1)
	}
	of[0][0] = 1
	reach := 0
	for i, r := range ranks {
		reach += r
		for k := min(i+1, m); k >= 1; k-- {
			for s := reach; s >= r; s-- {
				of[k][s] += of[k-1][s-r]
			}
		}
	}
	return of[m]
}

// normalP is the two-sided p of U by the normal approximation.
func normalP(u float64, m, n int, ties float64) float64 {
	mn, all := float64(m)*float64(n), float64(m+n)
	variance := mn / 12 * (all + 1 - ties/(all*(all-1)))
	if variance <= 0 {
		return 1 // all values are equal
	}
	z := max(0, math.Abs(u-mn/2)-0.5) / math.Sqrt(variance)
	return math.Erfc(z / math.Sqrt2)
}
