package plots

import (
	"errors"

	"grayfail/lab/campaign/report"
	"grayfail/lab/draw"
)

// File is one drawing.
type File struct {
	Name string // strip.svg, strip.png, ecdf.svg, ecdf.png
	Data []byte
}

var kinds = [...]struct {
	name string
	draw func(*report.Results) (draw.Drawing, error)
}{{"strip", strip}, {"ecdf", ecdf}}

// ErrNothing is returned where no run has a figure that could be drawn.
var ErrNothing = errors.New("no run has a figure to draw")

// MaxConditions that one drawing shows; more cannot be told apart.
const MaxConditions = 24

// ErrTooMany is returned for more than MaxConditions.
var ErrTooMany = errors.New("too many conditions for one drawing")

// Draw makes all files.
func Draw(res *report.Results) ([]File, error) {
	points := 0
	for _, s := range res.Series {
		points += len(s.Points)
	}
	switch {
	case points == 0:
		return nil, ErrNothing
	case len(res.Series) > MaxConditions:
		return nil, ErrTooMany
	}
	var out []File
	for _, d := range kinds {
		on, err := d.draw(res)
		if err != nil {
			return nil, err
		}
		svg, err := on.SVG()
		if err != nil {
			return nil, err
		}
		png, err := on.PNG()
		if err != nil {
			return nil, err
		}
		out = append(out, File{d.name + ".svg", svg}, File{d.name + ".png", png})
	}
	return out, nil
}
