package plots

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"grayfail/lab/campaign/report"
	"grayfail/lab/draw"
)

// strip draws every request as a point in the row of its condition, the first
// on top: a ring, or a filled triangle where the request was slow. A bar is the
// median.
func strip(res *report.Results) (draw.Drawing, error) {
	p := canvas(res, heading(res, "every request, bar: median"))
	rows := len(res.Series)
	ticks := make([]plot.Tick, rows)
	fast, slow := vgdraw.GlyphStyle{Shape: vgdraw.RingGlyph{}, Radius: 2.2}, vgdraw.GlyphStyle{Shape: vgdraw.PyramidGlyph{}, Radius: 2.8}
	for i, s := range res.Series {
		y := float64(rows - 1 - i)
		ticks[i] = plot.Tick{Value: y, Label: label(s.Condition) + "\n" + tally(res.Table[i])}
		var points [2]plotter.XYs // fast, slow
		for j, point := range s.Points {
			k := 0
			if point.Slow {
				k = 1
			}
			points[k] = append(points[k], plotter.XY{X: point.Value, Y: y + spread(j)})
		}
		for k, glyph := range []vgdraw.GlyphStyle{fast, slow} {
			glyph.Color = faded(draw.Color(i))
			if len(points[k]) == 0 {
				continue
			}
			drawn, err := plotter.NewScatter(points[k])
			if err != nil {
				return draw.Drawing{}, err
			}
			drawn.GlyphStyle = glyph
			p.Add(drawn)
		}
		median := res.Table[i].Median
		if median == nil {
			continue
		}
		bar, err := plotter.NewLine(plotter.XYs{{X: *median, Y: y - 0.38}, {X: *median, Y: y + 0.38}})
		if err != nil {
			return draw.Drawing{}, err
		}
		bar.Color, bar.Width = draw.Color(i), 2
		p.Add(bar)
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Min, p.Y.Max = -0.6, float64(rows)-0.4
	p.X.Min, p.X.Max = 0, end(res)
	fast.Color, slow.Color = draw.Color(0), draw.Color(0)
	return draw.Drawing{Plot: p, Legend: []draw.Entry{{Name: "a request", Draw: thumbnail(fast)}, {Name: "a slow request", Draw: thumbnail(slow)}}, Height: 2.5*vg.Centimeter + vg.Length(rows)*1.5*vg.Centimeter}, nil
}

// tally of a condition; what has no figure is not drawn, and said.
func tally(l report.Line) string {
	s := fmt.Sprintf("%d requests, %d slow", l.Requests, l.Slow)
	if missing := l.Requests - l.Measured; missing > 0 {
		s += fmt.Sprintf("\n%d not drawn: no figure", missing)
	}
	return s
}

type thumbnail vgdraw.GlyphStyle

func (t thumbnail) Thumbnail(c *vgdraw.Canvas) { c.DrawGlyph(vgdraw.GlyphStyle(t), c.Center()) }

// spread moves the j-th point off the middle of its row, so that equal values
// stay apart: the golden ratio's multiples fill a range evenly without chance.
func spread(j int) float64 {
	_, part := math.Modf(float64(j+1) * 0.6180339887498949)
	return (part - 0.5) * 0.6
}
