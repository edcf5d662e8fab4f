package trial

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"grayfail/event"
)

// Line of the campaign table: one condition.
type Line struct {
	Condition                    string
	Requests                     int
	Median, P10, Min, Max        float64 // tokens per second of decode
	LatencyMedian, LatencyP90    time.Duration
	Slow, Named, Unknown, Failed int // Slow by the exporter; Named: slow with a leg
	OK200                        int
}

// Summarise makes a line of each condition, in the given order.
func Summarise(results []Result, conditions []string) []Line {
	var lines []Line
	for _, name := range conditions {
		l := Line{Condition: name}
		var rates, latencies []float64
		for _, r := range results {
			if r.Condition != name {
				continue
			}
			l.Requests++
			latencies = append(latencies, r.Latency().Seconds())
			if r.Status == 200 {
				l.OK200++
			}
			if r.Err != nil {
				l.Failed++
			} else {
				rates = append(rates, r.Rate())
			}
			switch {
			case r.Row == nil || r.Row.Verdict == event.VerdictUnknown:
				l.Unknown++
			case r.Row.Verdict == event.VerdictSlow:
				l.Slow++
				if r.Row.Leg != "" {
					l.Named++
				}
			}
		}
		slices.Sort(rates)
		slices.Sort(latencies)
		if len(rates) > 0 {
			l.Median, l.P10, l.Min, l.Max = Median(rates), NearestRank(rates, 0.10), rates[0], rates[len(rates)-1]
		}
		if len(latencies) > 0 {
			l.LatencyMedian, l.LatencyP90 = seconds(Median(latencies)), seconds(NearestRank(latencies, 0.90))
		}
		lines = append(lines, l)
	}
	return lines
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Median of sorted values.
func Median(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// NearestRank is the q-quantile of sorted values, without interpolation.
func NearestRank(sorted []float64, q float64) float64 {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// WriteTable prints the campaign table.
func WriteTable(w io.Writer, lines []Line) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "condition\trequests\tmedian tok/s\tp10\trange\tlatency median\tp90\tslow\tunknown\tfailed\t")
	for _, l := range lines {
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%.1f\t%.1f-%.1f\t%.2f s\t%.2f s\t%d\t%d\t%d\t\n", l.Condition, l.Requests, l.Median, l.P10, l.Min, l.Max,
			l.LatencyMedian.Seconds(), l.LatencyP90.Seconds(), l.Slow, l.Unknown, l.Failed)
	}
	return t.Flush()
}
