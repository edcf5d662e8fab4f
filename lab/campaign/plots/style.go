package plots

import (
	"cmp"
	"image/color"
	"strings"
	"unicode"

	"gonum.org/v1/plot"

	"grayfail/lab/campaign/report"
	"grayfail/lab/draw"
)

func faded(c color.RGBA) color.Color {
	return color.NRGBA{c.R, c.G, c.B, 0xb0}
}

// canvas is an empty plot of a campaign's measure.
func canvas(res *report.Results, title string) *plot.Plot {
	p := draw.Canvas(title)
	p.X.Label.Text = axis(res.Method.Measure)
	return p
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
