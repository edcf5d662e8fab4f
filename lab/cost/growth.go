package cost

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Slopes up to which growth counts as linear. On a shared machine twice the
// size does not cost exactly twice as much; and the largest sizes leave the
// CPU's caches, which costs once and not with every doubling.
const (
	linear     = 1.1
	linearLast = 1.3
)

// Growth says how a cost follows its size: Y ~ X^slope.
type Growth struct {
	// Slope over all points, least squares of the logarithms.
	Slope float64
	// Last is the slope between the two largest sizes: what a fixed part hides
	// among the small ones shows there.
	Last float64
}

// Linear says whether growth is at most linear.
func (g Growth) Linear() bool { return g.Slope <= linear && g.Last <= linearLast }

// Growth of the curve; NaN with fewer than two sizes.
func (c *Curve) Growth() Growth {
	var xs, ys []float64
	for _, p := range c.Points {
		if p.X > 0 && p.Y > 0 {
			xs, ys = append(xs, math.Log(p.X)), append(ys, math.Log(p.Y))
		}
	}
	n := len(xs)
	if n < 2 {
		return Growth{math.NaN(), math.NaN()}
	}
	_, slope := stat.LinearRegression(xs, ys, nil, false)
	return Growth{slope, (ys[n-1] - ys[n-2]) / (xs[n-1] - xs[n-2])}
}
