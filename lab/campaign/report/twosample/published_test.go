package twosample

import (
	"math"
	"testing"
)

// Samples whose results are published.
var (
	// Hollander and Wolfe, "Nonparametric Statistical Methods" (1973), table
	// 4.1: permeability of the human chorioamnion at term and at 12 to 26 weeks.
	// It is the example of R's wilcox.test (W = 35, one-sided p = 0.1272) and of
	// the package coin (two-sided exact p = 0.2544; shift -0.305, 95% from -0.76
	// to 0.15: R-help, October 2006, "Wilcoxon Rank test of Package Coin").
	term    = []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	midterm = []float64{1.15, 0.88, 0.90, 0.74, 1.21}
	// scipy.stats.mannwhitneyu: age at the diagnosis of diabetes. U = 17, exact
	// p = 0.1111, by the normal approximation with continuity correction 0.11135.
	males   = []float64{19, 22, 16, 29, 24}
	females = []float64{20, 11, 17, 12}
	// R's wilcox.test over its data set airquality (Chambers et al., "Graphical
	// Methods for Data Analysis", 1983): ozone in May and August, with ties. W =
	// 127.5, p = 0.0001208 by the normal approximation with both corrections.
	may    = []float64{41, 36, 12, 18, 28, 23, 19, 8, 7, 16, 11, 14, 18, 14, 34, 6, 30, 11, 1, 11, 4, 32, 23, 45, 115, 37}
	august = []float64{39, 9, 16, 78, 35, 66, 122, 89, 110, 44, 28, 65, 22, 59, 23, 31, 44, 21, 9, 45, 168, 73, 76, 118, 84, 85}
)

func TestPublishedTests(t *testing.T) {
	for _, c := range []struct {
		name                  string
		x, y                  []float64
		u                     float64
		exact, exactTolerance float64 // 0: not published
		normal, tolerance     float64
	}{
		{"chorioamnion", term, midterm, 35, 0.2544, 0.00005, 0, 0},
		{"diabetes", males, females, 17, 1.0 / 9, 1e-12, 0.11134688653314041, 1e-12},
		{"ozone", may, august, 127.5, 0, 0, 0.0001208, 0.00000005},
	} {
		got, ok := MannWhitney(c.x, c.y)
		if !ok || got.U != c.u || !got.Exact {
			t.Errorf("%s: %+v, want U = %v and exact", c.name, got, c.u)
		}
		if c.exact > 0 && math.Abs(got.P-c.exact) > c.exactTolerance {
			t.Errorf("%s: exact p = %v, want %v", c.name, got.P, c.exact)
		}
		_, ties := midranks(c.x, c.y)
		p := normalP(got.U, len(c.x), len(c.y), ties)
		if c.normal > 0 && math.Abs(p-c.normal) > c.tolerance {
			t.Errorf("%s: normal p = %v, want %v", c.name, p, c.normal)
		}
	}
}

func TestPublishedShift(t *testing.T) {
	got, ok := HodgesLehmann(term, midterm)
	if !ok || got.Low == nil {
		t.Fatalf("%+v", got)
	}
	for _, c := range []struct{ got, want float64 }{{got.Estimate, -0.305}, {*got.Low, -0.76}, {*got.High, 0.15}} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
}

// The critical values of U at 0.05, two-sided: Mann and Whitney's table as it
// is reprinted in Siegel, "Nonparametric Statistics" (1956), table K. The
// interval begins one place behind them.
func TestPublishedCriticalValues(t *testing.T) {
	for _, c := range []struct{ m, n, critical int }{
		{4, 4, 0}, {5, 5, 2}, {6, 6, 5}, {7, 7, 8}, {8, 8, 13}, {10, 10, 23}, {12, 9, 26}, {15, 15, 64}, {20, 20, 127}, {9, 20, 48},
	} {
		if got := cutOff(c.m, c.n); got != c.critical+1 {
			t.Errorf("%d and %d: %d, want one more than %d", c.m, c.n, got, c.critical)
		}
	}
	for _, c := range [][2]int{{1, 20}, {2, 7}, {3, 4}, {3, 3}} {
		if got := cutOff(c[0], c[1]); got != 0 {
			t.Errorf("%v: %d, want none: no U is rare enough", c, got)
		}
	}
}
