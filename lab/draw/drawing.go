package draw

import (
	"bytes"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	width  = 18 * vg.Centimeter
	margin = 0.3 * vg.Centimeter
)

// Drawing is a plot with its legend below, where it covers no point.
type Drawing struct {
	Plot   *plot.Plot
	Legend []Entry
	Height vg.Length // of the plot alone
}

// Entry of the legend.
type Entry struct {
	Name string
	Draw plot.Thumbnailer
}

// legendLine is the height of one entry.
const legendLine = 0.5 * vg.Centimeter

func (d *Drawing) size() (w, h vg.Length) {
	return width, d.Height + vg.Length(len(d.Legend))*legendLine + 3*margin
}

func (d *Drawing) on(c vg.CanvasSizer) {
	w, h := c.Size()
	c.SetColor(d.Plot.BackgroundColor)
	c.Fill(vg.Rectangle{Max: vg.Point{X: w, Y: h}}.Path())
	all := vgdraw.Crop(vgdraw.New(c), margin, -margin, margin, -margin)
	inner := all.Size().Y
	d.Plot.Draw(vgdraw.Crop(all, 0, 0, inner-d.Height, 0))
	for i, e := range d.Legend {
		top := inner - d.Height - margin - vg.Length(i)*legendLine
		legend := plot.NewLegend()
		legend.TextStyle = d.Plot.Legend.TextStyle
		legend.Top, legend.Left, legend.ThumbnailWidth = true, true, 1.2*vg.Centimeter
		legend.Add(e.Name, e.Draw)
		legend.Draw(vgdraw.Crop(all, width/4, 0, top-legendLine, top-inner))
	}
}

// SVG names the font that the text was measured with and, for readers without
// it, those of the same widths.
func (d *Drawing) SVG() ([]byte, error) {
	c := vgsvg.New(d.size())
	d.on(c)
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

// PNG has 150 points an inch.
func (d *Drawing) PNG() ([]byte, error) {
	const dpi = 150
	c := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(d.size()), vgimg.UseDPI(dpi))}
	d.on(c)
	var b bytes.Buffer
	_, err := c.WriteTo(&b)
	return b.Bytes(), err
}
