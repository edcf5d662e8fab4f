package board

import (
	"fmt"
	"math"
	"strings"
)

// The plot's size in units of its viewBox.
const (
	plotWidth  = 320.0
	plotHeight = 72.0
	plotEdge   = 4.0
)

// Plot holds the last requests of one model and phase, oldest first.
type Plot struct{ Points []Point }

// Point is one request. Rates are tokens per second; a Baseline of 0 is not
// known.
type Point struct {
	Rate, Baseline float64
	Mark           Mark
}

// Mark is what was said of a request; it is a class name of the style sheet.
type Mark string

const (
	MarkOK      Mark = "ok"
	MarkSlow    Mark = "slow"
	MarkUnknown Mark = "unknown"
)

// top is the upper end of the scale.
func (p Plot) top() float64 {
	top := 0.0
	for _, point := range p.Points {
		top = max(top, point.Rate, point.Baseline)
	}
	return top
}

func (p Plot) x(i int) float64 {
	if len(p.Points) < 2 {
		return plotWidth / 2
	}
	return plotEdge + (plotWidth-2*plotEdge)*float64(i)/float64(len(p.Points)-1)
}

func (p Plot) y(rate float64) float64 {
	return plotHeight - plotEdge - (plotHeight-2*plotEdge)*rate/p.top()
}

// Drawable says whether there is anything to draw.
func (p Plot) Drawable() bool {
	top := p.top()
	return top > 0 && !math.IsInf(top, 0) && !math.IsNaN(top)
}

// ViewBox of the drawing.
func (p Plot) ViewBox() string { return fmt.Sprintf("0 0 %.0f %.0f", plotWidth, plotHeight) }

// Line is the path of the baselines, each multiplied by factor: 1 is what is
// usual, 0.5 where slow begins. It breaks where there is none.
func (p Plot) Line(factor float64) string {
	var path strings.Builder
	pen := "M"
	for i, point := range p.Points {
		if point.Baseline <= 0 {
			pen = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", pen, p.x(i), p.y(point.Baseline*factor))
		pen = "L"
		if len(p.Points) == 1 {
			fmt.Fprintf(&path, "m-20 0h40")
		}
	}
	return path.String()
}

// Dots are the requests: small circles, and for slow ones squares, so that
// colour is not all that tells them apart.
func (p Plot) Dots() []Dot {
	dots := make([]Dot, 0, len(p.Points))
	for i, point := range p.Points {
		dots = append(dots, Dot{fmt.Sprintf("%.1f", p.x(i)), fmt.Sprintf("%.1f", p.y(point.Rate)), point.Mark})
	}
	return dots
}

// Dot is one request in the drawing.
type Dot struct {
	X, Y string
	Mark Mark
}

// Slow says whether the dot is a square.
func (d Dot) Slow() bool { return d.Mark == MarkSlow }

// Summary says in words what is drawn, for whoever does not see it.
func (p Plot) Summary() string {
	slow, unknown := 0, 0
	for _, point := range p.Points {
		switch point.Mark {
		case MarkSlow:
			slow++
		case MarkUnknown:
			unknown++
		}
	}
	text := fmt.Sprintf("last %d requests: %d slow", len(p.Points), slow)
	if unknown > 0 {
		text += fmt.Sprintf(", %d not judged", unknown)
	}
	return text
}
