package draw

import (
	"image/color"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// palette of Okabe and Ito ("Color Universal Design", 2008) without its yellow,
// which white paper swallows. The first is for the control, or whatever the
// others are held against.
var palette = [...]color.RGBA{
	{0x00, 0x00, 0x00, 0xff}, // black
	{0x00, 0x72, 0xb2, 0xff}, // blue
	{0xd5, 0x5e, 0x00, 0xff}, // vermilion
	{0x00, 0x9e, 0x73, 0xff}, // bluish green
	{0xcc, 0x79, 0xa7, 0xff}, // reddish purple
	{0xe6, 0x9f, 0x00, 0xff}, // orange
	{0x56, 0xb4, 0xe9, 0xff}, // sky blue
}

var dashes = [...][]vg.Length{nil, {6, 3}, {2, 2}, {8, 2, 2, 2}}

// Dashes of the i-th series' line: four of them, so with seven colours a pair
// comes again after 28 series only.
func Dashes(i int) []vg.Length { return dashes[i%len(dashes)] }

// Color of the i-th series.
func Color(i int) color.RGBA { return palette[i%len(palette)] }

// Canvas is an empty plot in our hand: a sans-serif font, a quiet grid.
func Canvas(title string) *plot.Plot {
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
	p.X.Padding, p.Y.Padding = 0, 0
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
