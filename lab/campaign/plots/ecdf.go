package plots

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"grayfail/lab/campaign/report"
	"grayfail/lab/draw"
)

// ecdf draws for each condition which part of its requests was at or below each
// value.
func ecdf(res *report.Results) (draw.Drawing, error) {
	p := canvas(res, heading(res, "empirical distribution"))
	var legend []draw.Entry
	for i, s := range res.Series {
		if len(s.Points) == 0 {
			continue
		}
		steps, err := plotter.NewLine(distribution(s))
		if err != nil {
			return draw.Drawing{}, err
		}
		steps.StepStyle = plotter.PostStep
		steps.LineStyle = vgdraw.LineStyle{Color: draw.Color(i), Width: 1.6, Dashes: draw.Dashes(i)}
		p.Add(steps)
		legend = append(legend, draw.Entry{Name: fmt.Sprintf("%s (n = %d)", label(s.Condition), len(s.Points)), Draw: steps})
	}
	p.Y.Label.Text = "part of the requests at or below"
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, end(res), 0, 1
	return draw.Drawing{Plot: p, Legend: legend, Height: 10 * vg.Centimeter}, nil
}

// distribution are the corners of the steps.
func distribution(s report.Series) plotter.XYs {
	values := make([]float64, len(s.Points))
	for i, p := range s.Points {
		values[i] = p.Value
	}
	slices.Sort(values)
	steps := plotter.XYs{{X: values[0], Y: 0}}
	for i, v := range values {
		steps = append(steps, plotter.XY{X: v, Y: float64(i+1) / float64(len(values))})
	}
	return steps
}
