package plots

import (
	"bytes"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	width  = 18 * vg.Centimeter
	margin = 0.3 * vg.Centimeter
)

// drawing is a plot with its legend below, where it covers no point.
type drawing struct {
	plot   *plot.Plot
	legend []entry
	height vg.Length // of the plot alone
}

type entry struct {
	name string
	draw plot.Thumbnailer
}

// legendLine is the height of one entry.
const legendLine = 0.5 * vg.Centimeter

func (d *drawing) size() (w, h vg.Length) {
	return width, d.height + vg.Length(len(d.legend))*legendLine + 3*margin
}

func (d *drawing) on(c vg.CanvasSizer) {
	w, h := c.Size()
	c.SetColor(d.plot.BackgroundColor)
	c.Fill(vg.Rectangle{Max: vg.Point{X: w, Y: h}}.Path())
	all := draw.Crop(draw.New(c), margin, -margin, margin, -margin)
	inner := all.Size().Y
	d.plot.Draw(draw.Crop(all, 0, 0, inner-d.height, 0))
	for i, e := range d.legend {
		top := inner - d.height - margin - vg.Length(i)*legendLine
		legend := plot.NewLegend()
		legend.TextStyle = d.plot.Legend.TextStyle
		legend.Top, legend.Left, legend.ThumbnailWidth = true, true, 1.2*vg.Centimeter
		legend.Add(e.name, e.draw)
		legend.Draw(draw.Crop(all, width/4, 0, top-legendLine, top-inner))
	}
}

// svg names the font that the text was measured with and, for readers without
// it, those of the same widths.
func (d *drawing) svg() ([]byte, error) {
	c := vgsvg.New(d.size())
	d.on(c)
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

func (d *drawing) png() ([]byte, error) {
	const dpi = 150
	c := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(d.size()), vgimg.UseDPI(dpi))}
	d.on(c)
	var b bytes.Buffer
	_, err := c.WriteTo(&b)
	return b.Bytes(), err
}
