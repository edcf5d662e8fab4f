package report

import (
	"fmt"
	"strings"
)

// Summary is the table in the form in which the field publishes it, and the
// judgements on the criteria: what the end of a campaign prints.
func (r *Results) Summary() string {
	s := r.mainTable()
	if c := r.criteria(); c != "" {
		s += "\n" + c
	}
	return s
}

func (r *Results) mainTable() string {
	m := r.Method.Measure
	tail, format := "p10", "%.1f"
	if m == Latency {
		tail, format = "p90", "%.3f"
	}
	g := newGrid("condition", "requests", "median "+m.Unit(), tail, "range", "latency median", "p90", "slow", "unjudged", "failed", "invalid")
	for _, l := range r.Table {
		g.add(l.Condition, fmt.Sprint(l.Requests), number(format, l.Median), number(format, l.P10), span(format, l.Min, l.Max),
			number("%.2f s", l.LatencyMedian), number("%.2f s", l.LatencyP90),
			of(l.Slow, l.Requests), fmt.Sprint(l.Unknown), fmt.Sprint(l.Failed), fmt.Sprint(l.Invalid))
	}
	return g.String()
}

func (r *Results) criteria() string {
	var b strings.Builder
	for _, j := range r.Criteria {
		fmt.Fprintf(&b, "- criterion %s: **%s**", j.Criterion, strings.ToUpper(string(j.Result)))
		if j.Found != nil {
			fmt.Fprintf(&b, ", rho = %.3f, n = %d, p = %.4f (two-sided, %d permutations)", j.Found.Rho, j.Found.N, j.Found.P, permutations)
		}
		if j.Why != "" {
			fmt.Fprintf(&b, ": %s", j.Why)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (r *Results) normalizedTable() string {
	header := []string{"condition", "requests", "median", "p10", "range"}
	rule := r.Method.SlowBelow > 0
	if rule {
		header = append(header, fmt.Sprintf("below %.2f", r.Method.SlowBelow))
	}
	g := newGrid(append(header, "no baseline")...)
	for _, n := range r.Normalized {
		row := []string{n.Condition, fmt.Sprint(n.N), number("%.2f", n.Median), number("%.2f", n.P10), span("%.2f", n.Min, n.Max)}
		if rule {
			row = append(row, of(n.Below, n.N))
		}
		g.add(append(row, fmt.Sprint(n.WithoutBlock))...)
	}
	return g.String()
}

func (r *Results) correlationTable() string {
	g := newGrid("condition", "evidence", "n", "rho", "p")
	for _, c := range r.Correlations {
		g.add(c.Condition, string(c.Evidence), fmt.Sprint(c.N), fmt.Sprintf("%.3f", c.Rho), fmt.Sprintf("%.4f", c.P))
	}
	return g.String()
}

func (r *Results) timeoutTable() string {
	g := newGrid("condition", "slow with RTO", "slow without", "fast with RTO", "fast without", "failed with RTO", "failed without", "not counted")
	for _, t := range r.Timeouts {
		g.add(t.Condition, fmt.Sprint(t.Slow.With), fmt.Sprint(t.Slow.Without), fmt.Sprint(t.Fast.With), fmt.Sprint(t.Fast.Without),
			fmt.Sprint(t.Failed.With), fmt.Sprint(t.Failed.Without), fmt.Sprint(t.Slow.Unknown+t.Fast.Unknown+t.Failed.Unknown))
	}
	return g.String()
}

func (r *Results) namingTable() string {
	g := newGrid("condition", "slow", "legs named", "causes")
	for _, n := range r.Naming {
		if n.Slow > 0 {
			g.add(n.Condition, fmt.Sprint(n.Slow), list(n.Legs, "none"), list(n.Causes, "none given"))
		}
	}
	return g.String()
}

func list(counts []Count, unnamed string) string {
	parts := make([]string, len(counts))
	for i, c := range counts {
		if c.Name == "" {
			c.Name = unnamed
		}
		parts[i] = fmt.Sprintf("%s %d", c.Name, c.Count)
	}
	return strings.Join(parts, ", ")
}
