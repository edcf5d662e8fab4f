package report

import (
	"fmt"

	"grayfail/lab/campaign/report/twosample"
)

// Summary is the table of the comparison.
func (c *Comparison) Summary() string { return c.table() }

// Markdown is the comparison as a person would publish it.
func (c *Comparison) Markdown() []byte {
	var p page
	p.say("# %s against %s", c.B.title(), c.A.title())
	p.section("What is compared", fmt.Sprintf("- A: %s, specification `%s`\n- B: %s, specification `%s`", c.A.title(), c.A.SpecHash, c.B.title(), c.B.SpecHash), "")
	if c.A.SpecHash == c.B.SpecHash {
		p.say("\nBoth are of one specification: what differs is not in it.")
	}
	p.section("Results", c.table(), "")
	p.say("Shift is Hodges and Lehmann's: the median of all differences of a request of B and one of A, in %s, with the %.0f%% interval of the shifts "+
		"that the Mann-Whitney test does not reject. U counts the pairs in which B is the larger, p is two-sided. Normalized figures are by each block's control.", c.Measure.Unit(), 100*twosample.Confidence)
	if len(c.OnlyA)+len(c.OnlyB) > 0 {
		p.section("Not compared", "")
		for _, name := range c.OnlyA {
			p.say("- %s: only in A", name)
		}
		for _, name := range c.OnlyB {
			p.say("- %s: only in B", name)
		}
	}
	p.section("Limits", "")
	p.say("- A and B ran at different times: raw figures differ by whatever else did; normalized ones by less.")
	p.say("- p-values are not corrected for the number of conditions.")
	p.say("- Requests of one block are taken as independent.")
	return []byte(p.String())
}

func (s Side) title() string { return orElse(s.Name, "campaign") }

func (c *Comparison) table() string {
	format := "%.1f"
	if c.Measure == Latency {
		format = "%.3f"
	}
	g := newGrid("condition", "n A", "n B", "median A", "median B", "shift "+c.Measure.Unit(), "95%", "U", "p",
		"normalized shift", "95%", "p", "slow A", "slow B")
	for _, ch := range c.Conditions {
		row := []string{ch.Condition, fmt.Sprint(ch.A.Measured), fmt.Sprint(ch.B.Measured), number(format, ch.A.Median), number(format, ch.B.Median)}
		row = append(row, ch.Measured.cells(format, true)...)
		row = append(row, ch.Normalized.cells("%.2f", false)...)
		g.add(append(row, of(ch.A.Slow, ch.A.Requests), of(ch.B.Slow, ch.B.Requests))...)
	}
	return g.String()
}

// cells are shift, interval, U where wanted, and p.
func (e *Effect) cells(format string, withU bool) []string {
	if e == nil {
		if withU {
			return []string{"-", "-", "-", "-"}
		}
		return []string{"-", "-", "-"}
	}
	signed := "%+" + format[1:]
	interval := "too few"
	if e.Shift.Low != nil {
		interval = fmt.Sprintf(signed+" to "+signed, *e.Shift.Low, *e.Shift.High)
	}
	out := []string{fmt.Sprintf(signed, e.Shift.Estimate), interval}
	if withU {
		out = append(out, fmt.Sprintf("%.1f", e.Test.U))
	}
	p := fmt.Sprintf("%.4f", e.Test.P)
	if e.Test.P < 0.0001 {
		p = "<0.0001"
	}
	return append(out, p)
}
