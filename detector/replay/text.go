package replay

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"grayfail/event"
)

// WriteText prints a result for people: slow phases, episodes, the table and
// the correlations. Names out of recordings are quoted, so that they cannot
// drive a terminal.
func (r *Result) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s: %d records, %d bad lines\n", clean(r.File), r.Records, r.BadLines)
	for i := range r.Requests {
		if row := &r.Requests[i]; row.Verdict == event.VerdictSlow {
			ratio := "-"
			if row.R != nil {
				ratio = fmt.Sprintf("%.3f", *row.R)
			}
			fmt.Fprintf(t, "slow %s\t%s\tr %s\texcess %.1f ms\t%s\t%s\t%s\n",
				clean(row.ID), row.Phase, ratio, row.ExcessMS, row.Cause, clean(row.Leg), clean(row.Detail))
		}
	}
	for _, e := range r.Episodes {
		fmt.Fprintf(t, "episode %s to %s\t%s %s\t%d of %d slow\t%s\t%s\n",
			stamp(e.StartNS), stamp(e.EndNS), clean(e.Model), e.Phase, e.Slow, e.Requests, e.Cause, clean(e.Leg))
	}
	fmt.Fprintln(t, "condition\trequests\tmedian\tp10\tmin\tmax\tlatency\tp90\tslow\tunknown\tfailed")
	for _, c := range r.Table {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\n", clean(c.Condition), c.Requests,
			number(c.Median), number(c.P10), number(c.Min), number(c.Max), number(c.LatencyMedian), number(c.LatencyP90),
			c.Slow, c.Unknown, c.Failed)
	}
	for _, c := range r.Correlation {
		fmt.Fprintf(t, "%s: r is associated with %s of %s\trho %.3f\tp %.3f\tn %d\n", clean(c.Condition), c.Evidence, clean(c.Leg), c.Rho, c.PValue, c.N)
	}
	return t.Flush()
}

func number(x *float64) string {
	if x == nil {
		return "-"
	}
	return strconv.FormatFloat(*x, 'f', 2, 64)
}

func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339) }

// clean quotes a text that is more than plain characters.
func clean(s string) string {
	for _, c := range s {
		if !strconv.IsPrint(c) {
			return strconv.Quote(s)
		}
	}
	return s
}
