// Command record makes recordings for the detector: a real cluster, a number
// of requests without fault, then as many under one fault, as the exporter saw
// them. One file a scenario; nothing is left out of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kingpin/v2"

	"grayfail/event"
	"grayfail/lab"
	"grayfail/lab/trial"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type flags struct {
	out, binary, instance string
	scenarios             []string
	baseline, fault       int
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var f flags
	app := kingpin.New("record", "Records what the exporter sees under faults, one file a scenario.").Terminate(nil)
	list := app.Flag("list", "List the scenarios and what is true under each.").Bool()
	app.Flag("out", "Directory for the recordings.").Default("recordings").StringVar(&f.out)
	app.Flag("exporter", "The exporter's binary.").Default("bin/grayfail_exporter").StringVar(&f.binary)
	app.Flag("instance", "Name of the lab instance.").Default("rec").StringVar(&f.instance)
	app.Flag("baseline", "Requests without fault.").Default("20").IntVar(&f.baseline)
	app.Flag("fault", "Requests under the fault.").Default("25").IntVar(&f.fault)
	app.Arg("scenario", "Which ones; patterns such as loss* work. Default: all.").StringsVar(&f.scenarios)
	if _, err := app.Parse(args); err != nil {
		fmt.Fprintln(stderr, "record:", err)
		return 2
	}
	if *list {
		for _, s := range trial.Scenarios() {
			fmt.Fprintf(stdout, "%-36s %s\n", s.Name, s.Truth)
		}
		return 0
	}
	chosen, err := choose(f.scenarios)
	if err != nil {
		fmt.Fprintln(stderr, "record:", err)
		return 2
	}
	var failed []error
	for _, s := range chosen {
		if err := record(ctx, f, s, stdout); err != nil {
			fmt.Fprintf(stderr, "record: %s: %v\n", s.Name, err)
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if failed != nil {
		return 1
	}
	return 0
}

func choose(patterns []string) ([]trial.Scenario, error) {
	all := trial.Scenarios()
	if len(patterns) == 0 {
		return all, nil
	}
	var out []trial.Scenario
	for _, p := range patterns {
		found := false
		for _, s := range all {
			ok, err := filepath.Match(p, s.Name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p, err)
			}
			if ok {
				found = true
				out = append(out, s)
			}
		}
		if !found {
			return nil, fmt.Errorf("no scenario %q: --list shows them", p)
		}
	}
	return out, nil
}

// record plays one scenario on a cluster of its own.
func record(ctx context.Context, f flags, s trial.Scenario, stdout io.Writer) (err error) {
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return err
	}
	kind, err := lab.EngineFromEnv()
	if err != nil {
		return err
	}
	c, err := lab.Start(ctx, lab.Options{Instance: f.instance, Engine: kind, Relay: s.Relay})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	exporter, err := trial.StartExporter(ctx, c, trial.ExporterOptions{Binary: f.binary, Record: filepath.Join(c.RunDir, "raw.jsonl.gz")})
	if err != nil {
		return err
	}
	request := lab.RequestOptions{URL: exporter.ProxyURL()}
	for range 3 { // the engine's own first requests are slower
		if a := c.Request(ctx, lab.RequestOptions{}); a.Err != nil {
			return a.Err
		}
	}
	var acts []trial.Act
	for _, part := range []struct {
		cond trial.Condition
		n    int
	}{
		{trial.Condition{Name: "baseline", Concurrency: s.Concurrency}, f.baseline},
		{s.Condition(), f.fault},
	} {
		plan := trial.Plan{Blocks: 1, Repeats: part.n, Conditions: []trial.Condition{part.cond}, Request: request}
		if err := plan.Run(ctx, c, func(a trial.Act) { acts = append(acts, a) }); err != nil {
			return err
		}
	}
	if _, err := exporter.AwaitRows(ctx, event.PhaseDecode, f.baseline+f.fault); err != nil {
		return err
	}
	rows, err := exporter.Rows(ctx, event.PhaseDecode)
	if err != nil {
		return err
	}
	if err := exporter.Stop(); err != nil {
		return err
	}
	out := filepath.Join(f.out, s.Name+".jsonl.gz")
	n, err := trial.LabelFile(out, exporter.Record, acts)
	if err != nil {
		return err
	}
	if n < f.baseline+f.fault {
		return fmt.Errorf("%d requests recorded of %d", n, f.baseline+f.fault)
	}
	describe(stdout, s, acts, rows)
	return nil
}

// describe prints the truth beside what was said live.
func describe(w io.Writer, s trial.Scenario, acts []trial.Act, rows []event.Row) {
	base, fault := acts[0], acts[1]
	results := append(slices.Clone(base.Results), fault.Results...)
	lines := trial.Summarise(results, []string{base.Condition, fault.Condition})
	slow := 0
	for _, r := range fault.Results {
		if r.Err != nil || r.Rate() < lines[0].Median/2 {
			slow++
		}
	}
	fmt.Fprintf(w, "%-36s truth %-9s  %.0f -> %.0f tok/s, %d of %d below half", s.Name, s.Truth, lines[0].Median, lines[1].Median, slow, len(fault.Results))
	for _, e := range fault.Evidence {
		fmt.Fprintf(w, "; %s", e)
	}
	fmt.Fprintf(w, "; said live: %s", said(fault.During(rows)))
	if s.Concurrency <= 1 && strings.HasPrefix(s.Truth, "rpc-") { // else the rows cannot be told apart, or no leg is right
		trial.Join(fault.Results, rows)
		score := trial.ScoreOf(fault.Results, trial.Usual{Low: lines[0].Median, High: lines[0].Median}, s.Truth)
		fmt.Fprintf(w, "; %d right, %d wrong, %d abstained, %d missed, %d invented", score.Right, score.Wrong, score.Abstained, score.Missed, score.Invented)
		if len(score.Shares) > 0 {
			fmt.Fprintf(w, ", median share %.2f", trial.Median(score.Shares))
		}
	}
	if before := base.During(rows); said(before) != "nothing" {
		fmt.Fprintf(w, "; before the fault: %s", said(before))
	}
	fmt.Fprintln(w)
}

// said counts what slow rows were blamed on.
func said(rows []event.Row) string {
	counts := map[string]int{}
	for _, r := range rows {
		if r.Verdict == event.VerdictSlow {
			counts[strings.TrimSpace(fmt.Sprintf("%s %s", r.Cause, r.Leg))]++
		}
	}
	if len(counts) == 0 {
		return "nothing"
	}
	var words []string
	for what, n := range counts {
		words = append(words, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}
