package plots

import (
	"cmp"
	"image/color"
	"strconv"
	"strings"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"grayfail/lab/campaign/report"
)

// palette of Okabe and Ito ("Color Universal Design", 2008) without its yellow,
// which white paper swallows. The first is for the first condition, which is
// the control as a rule.
var palette = [...]color.RGBA{
	{0x00, 0x00, 0x00, 0xff}, // black
	{0x00, 0x72, 0xb2, 0xff}, // blue
	{0xd5, 0x5e, 0x00, 0xff}, // vermilion
	{0x00, 0x9e, 0x73, 0xff}, // bluish green
	{0xcc, 0x79, 0xa7, 0xff}, // reddish purple
	{0xe6, 0x9f, 0x00, 0xff}, // orange
	{0x56, 0xb4, 0xe9, 0xff}, // sky blue
}

// dashes, four of them: with seven colours a pair comes again after 28
// conditions only.
var dashes = [...][]vg.Length{nil, {6, 3}, {2, 2}, {8, 2, 2, 2}}

func colorOf(i int) color.RGBA { return palette[i%len(palette)] }

func faded(c color.RGBA) color.Color {
	return color.NRGBA{c.R, c.G, c.B, 0xb0}
}

// canvas is an empty plot in our hand: a sans-serif font, a quiet grid.
func canvas(res *report.Results, title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	for _, f := range []*font.Font{
		&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font,
	} {
		f.Variant = "Sans"
		f.Size = 9
	}
	p.Title.TextStyle.Font.Size = 11
	p.Title.Padding = 8
	p.X.Label.Text, p.X.Padding, p.Y.Padding = axis(res.Method.Measure), 0, 0
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(ticks), plot.TickerFunc(ticks)
	grid := plotter.NewGrid()
	for _, l := range []*color.Color{&grid.Horizontal.Color, &grid.Vertical.Color} {
		*l = color.Gray{0xdd}
	}
	p.Add(grid)
	return p
}

// ticks without the zeros that say nothing.
func ticks(low, high float64) []plot.Tick {
	out := plot.DefaultTicks{}.Ticks(low, high)
	for i := range out {
		if !out[i].IsMinor() {
			out[i].Label = strconv.FormatFloat(out[i].Value, 'g', 6, 64)
		}
	}
	return out
}

// end of the axis of values: the largest one stays clear of the edge.
func end(res *report.Results) float64 {
	largest := 0.0
	for _, s := range res.Series {
		for _, p := range s.Points {
			largest = max(largest, p.Value)
		}
	}
	return cmp.Or(largest*1.03, 1)
}

func axis(m report.Measure) string {
	switch m {
	case report.Latency:
		return "latency of a request, seconds"
	case report.Prefill:
		return "prefill, tokens per second"
	}
	return "decode, tokens per second"
}

// heading is the campaign's name and what is drawn.
func heading(res *report.Results, what string) string {
	if res.Method.Name == "" {
		return what
	}
	return label(res.Method.Name) + ": " + what
}

// label makes a name from the outside fit to be drawn.
func label(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	// Long names of one campaign differ in their ends as a rule.
	const head, tail = 22, 17
	if r := []rune(s); len(r) > head+1+tail {
		return string(r[:head]) + "…" + string(r[len(r)-tail:])
	}
	return s
}
