package cost

import (
	"fmt"
	"image/color"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"grayfail/lab/draw"
)

// File of the report, by its name in the folder.
type File struct {
	Name string
	Data []byte
}

// Plots draws the section's curves, one log-log plot for each pair of size and
// unit, and its series, one plot for each unit. Names are ID-SIZE-UNIT.svg.
func (s *Section) Plots() ([]File, error) {
	var files []File
	add := func(name string, d draw.Drawing) error {
		svg, err := d.SVG()
		files = append(files, File{name, svg})
		return err
	}
	for _, group := range groups(s.Curves, func(c Curve) string { return c.Size + "-" + c.Unit }) {
		d, err := curves(s.Title, group)
		if err != nil {
			return nil, err
		}
		if err := add(plotName(s.ID, group[0].Size, group[0].Unit), d); err != nil {
			return nil, err
		}
	}
	for _, group := range groups(s.Series, func(c Series) string { return c.Unit }) {
		d, err := series(s.Title, group)
		if err != nil {
			return nil, err
		}
		if err := add(plotName(s.ID, "time", group[0].Unit), d); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// groups keeps the order in which keys first come.
func groups[T any](all []T, key func(T) string) (out [][]T) {
	index := map[string]int{}
	for _, v := range all {
		i, known := index[key(v)]
		if !known {
			i = len(out)
			index[key(v)] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], v)
	}
	return out
}

// other is everything that a file's name does without.
var other = regexp.MustCompile(`[^a-z0-9-]+`)

func plotName(parts ...string) string {
	return other.ReplaceAllString(strings.ToLower(strings.Join(parts, "-")), "_") + ".svg"
}

// curves on logarithmic axes, with a line of slope 1 through the first point
// of the first curve.
func curves(title string, all []Curve) (draw.Drawing, error) {
	p := draw.Canvas(title)
	p.X.Label.Text, p.Y.Label.Text = all[0].Size, all[0].Unit
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(decades), plot.TickerFunc(decades)
	var legend []draw.Entry
	for i, c := range all {
		line, points, err := plotter.NewLinePoints(xys(c.Points))
		if err != nil {
			return draw.Drawing{}, fmt.Errorf("%s: %w", c.Name, err)
		}
		line.LineStyle = vgdraw.LineStyle{Color: draw.Color(i), Width: 1.6, Dashes: draw.Dashes(i)}
		points.GlyphStyle = vgdraw.GlyphStyle{Color: draw.Color(i), Shape: vgdraw.CircleGlyph{}, Radius: 2}
		p.Add(line, points)
		legend = append(legend, draw.Entry{Name: fmt.Sprintf("%s: slope %.2f", c.Name, c.Growth().Slope), Draw: line})
	}
	lowX, highX, lowY, highY := p.X.Min, p.X.Max, p.Y.Min, p.Y.Max
	first := all[0].Points[0]
	reach := min(highX, first.X*highY/first.Y)
	one, err := plotter.NewLine(plotter.XYs{{X: first.X, Y: first.Y}, {X: reach, Y: first.Y * reach / first.X}})
	if err != nil {
		return draw.Drawing{}, err
	}
	one.LineStyle = vgdraw.LineStyle{Color: color.Gray{0x99}, Width: 0.8}
	p.Add(one)
	legend = append(legend, draw.Entry{Name: "slope 1", Draw: one})
	p.X.Min, p.X.Max = lowX/1.2, highX*1.2
	p.Y.Min, p.Y.Max = math.Pow(10, math.Floor(math.Log10(lowY))), math.Pow(10, math.Ceil(math.Log10(highY)))
	return draw.Drawing{Plot: p, Legend: legend, Height: 9 * vg.Centimeter}, nil
}

// decades marks powers of ten, and between them nothing but lines.
func decades(low, high float64) (ticks []plot.Tick) {
	for d := math.Floor(math.Log10(low)); d <= math.Ceil(math.Log10(high)); d++ {
		for i := 1.0; i < 10; i++ {
			v := i * math.Pow(10, d)
			t := plot.Tick{Value: v}
			if i == 1 {
				t.Label = strconv.FormatFloat(v, 'g', -1, 64)
			}
			if v >= low && v <= high {
				ticks = append(ticks, t)
			}
		}
	}
	return ticks
}

func series(title string, all []Series) (draw.Drawing, error) {
	p := draw.Canvas(title)
	p.X.Label.Text, p.Y.Label.Text = "seconds", all[0].Unit
	var legend []draw.Entry
	for i, s := range all {
		line, err := plotter.NewLine(xys(s.Points))
		if err != nil {
			return draw.Drawing{}, fmt.Errorf("%s: %w", s.Name, err)
		}
		line.LineStyle = vgdraw.LineStyle{Color: draw.Color(i), Width: 1.6, Dashes: draw.Dashes(i)}
		p.Add(line)
		legend = append(legend, draw.Entry{Name: s.Name, Draw: line})
	}
	p.X.Min, p.Y.Min, p.Y.Max = 0, 0, p.Y.Max*1.05
	return draw.Drawing{Plot: p, Legend: legend, Height: 6 * vg.Centimeter}, nil
}

func xys(points []Point) plotter.XYs {
	out := make(plotter.XYs, 0, len(points))
	for _, p := range points {
		out = append(out, plotter.XY{X: p.X, Y: p.Y})
	}
	slices.SortFunc(out, func(a, b plotter.XY) int { return int(math.Copysign(1, a.X-b.X)) })
	return out
}
