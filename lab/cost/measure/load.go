package measure

import (
	"context"
	"fmt"

	"grayfail/lab"
	"grayfail/lab/cost"
)

const (
	pushesPerSecond    = 10_000
	pushesPerPost      = 100
	loadLegs           = 256
	exchangesPerSecond = 1000 // of each leg
	maxResident        = 64 << 20
)

const loadMethod = "The exporter alone in its namespace, scraped once a second. Pushed: 10,000 records a second, 100 in a POST, two models. Legs: 256 connections to as many peers, 1,000 exchanges a second wanted of each; two cores that also run both ends give fewer, and the table says how many; what is lost there is the ring that a turn came to late because no core was free. How the exporter's own part takes 256,000 exchanges a second is `BenchmarkTurn` in [bench.txt](bench.txt)."

// loadSeconds for every round: memory wants longer than a comparison.
const loadSeconds = 3

// Load measures memory, goroutines, descriptors and CPU time over time.
func Load(ctx context.Context, o Options) (cost.Section, error) {
	s := cost.Section{ID: "load", Title: "Under load, over time", Method: loadMethod}
	table := cost.Table{
		Title:  "First third against last third",
		Header: []string{"load", "events a second", "lost or refused", "CPU a second", "resident, largest", "resident, last third / first", "goroutines, first to last", "descriptors, first to last"},
	}
	return s, timed(ctx, &s, func() error {
		for _, l := range []struct {
			name   string
			config string
			start  func(context.Context, *lab.Cluster, *subject) (*generator, error)
		}{
			{"pushed requests", "requests: {push: {enabled: true}}", pushing},
			{"256 legs", "{}", exchanging},
		} {
			w, err := watch(ctx, o, l.config, l.start)
			if err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			table.Rows = append(table.Rows, w.row(l.name))
			s.Series = append(s.Series, cost.Series{Name: l.name, Unit: "resident MB", Points: w.resident}, cost.Series{Name: l.name, Unit: "goroutines", Points: w.goroutines}, cost.Series{Name: l.name, Unit: "descriptors", Points: w.files})
			if l.name == "256 legs" {
				t := cost.Target{What: "memory with 256 legs under load", Aim: "at most 64 MB resident", Got: fmt.Sprintf("%.0f MB", largest(w.resident)), Met: largest(w.resident) <= maxResident>>20}
				if !t.Met {
					t.Why = "some 20 MB are the pages of the program file; of what is in use (43 MB by the heap profile) two fifths are the exchanges kept for requests that come late, at most 131,072, and a quarter the histograms of 256 legs; the rest waits to be collected. The plot says whether it still grows"
				}
				s.Targets = append(s.Targets, t)
			}
		}
		s.Tables = []cost.Table{table}
		return nil
	})
}
