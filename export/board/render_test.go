package board

import (
	"strings"
	"testing"
)

func TestPlot(t *testing.T) {
	p := Plot{Points: []Point{
		{Rate: 100, Mark: MarkUnknown}, // before there was a baseline
		{Rate: 100, Baseline: 100, Mark: MarkOK},
		{Rate: 25, Baseline: 100, Mark: MarkSlow},
		{Rate: 90, Mark: MarkUnknown}, // another concurrency
		{Rate: 50, Baseline: 50, Mark: MarkOK},
	}}
	if got, want := p.Line(1), "M82.0 4.0L160.0 4.0M316.0 36.0"; got != want {
		t.Errorf("baseline %q, want %q", got, want)
	}
	if got, want := p.Line(0.5), "M82.0 36.0L160.0 36.0M316.0 52.0"; got != want {
		t.Errorf("half of it %q, want %q", got, want)
	}
	dots := p.Dots()
	if len(dots) != 5 || dots[2] != (Dot{"160.0", "52.0", MarkSlow}) || !dots[2].Slow() || dots[1].Slow() {
		t.Errorf("dots %+v", dots)
	}
	if got, want := p.Summary(), "last 5 requests: 1 slow, 2 not judged"; got != want {
		t.Errorf("summary %q, want %q", got, want)
	}
}

func TestPlotOfLittle(t *testing.T) {
	if (Plot{}).Drawable() || (Plot{Points: []Point{{}}}).Drawable() {
		t.Error("nothing, or a rate of 0 alone, can be drawn")
	}
	one := Plot{Points: []Point{{Rate: 10, Baseline: 20}}}
	if !one.Drawable() || one.Line(1) != "M160.0 4.0m-20 0h40" {
		t.Errorf("one request: %q", one.Line(1))
	}
}

func TestBars(t *testing.T) {
	got := bars([]Share{{Percent: 90, Named: true}, {Percent: 30}, {Percent: -20, Local: true}})
	if len(got) != 2 || got[0] != (bar{"named", "0.00", "75.00"}) || got[1] != (bar{"other", "75.00", "25.00"}) {
		t.Errorf("%+v", got)
	}
	if got := bars([]Share{{Percent: -1}}); got != nil {
		t.Errorf("%+v", got)
	}
}

// TestSectionsArePartsOfThePage: what the stream replaces is what the page
// shows, to the letter.
func TestSectionsArePartsOfThePage(t *testing.T) {
	p := &Page{
		AsOf: "now", Head: []Headline{{Level: Bad, Text: "A & B", Facts: []string{"f"}, Next: "n", Runbook: "r"}},
		Models: []Model{{Model: "m", Plot: Plot{Points: []Point{{Rate: 1, Baseline: 1, Mark: MarkSlow}}}}},
		Legs:   []Leg{{Name: "l", Slow: "loss"}}, Slow: []Request{{ID: "i", Ledger: []Share{{Name: "l", Percent: 100}}}},
	}
	html, err := Render(p)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := renderSections(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sections {
		if !strings.Contains(string(html), ">"+parts[name]+"</") || !strings.Contains(string(html), `id="`+name+`"`) {
			t.Errorf("section %s is not in the page", name)
		}
	}
	if p.Title() != "A & B - grayfail" || !strings.Contains(string(html), "<title>A &amp; B - grayfail</title>") {
		t.Errorf("title %q", p.Title())
	}
}
