package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"grayfail/event"
	"grayfail/lab"
	"grayfail/lab/monitor"
	"grayfail/lab/trial"
)

// Options of the demo. Zero values are those of `make demo`.
type Options struct {
	Lab    lab.Options
	Binary string // the exporter; default bin/grayfail_exporter in the project
	Rules  string // alert rules; default alerts/grayfail.rules.yml in the project
	Seed   uint64
	WarmUp int // default 15
	Blocks int // default 10
	// Loss lists the percentages of reply packets dropped, in rising order;
	// default 1 and 5.
	Loss []float64
	// Keep leaves everything running after the report, until ctx ends.
	Keep bool
}

// ErrNotShown is returned when the exporter did not do its main job.
var ErrNotShown = errors.New("the demo did not show what it should")

// ErrBusy is returned in its place when the machine was too busy to tell.
var ErrBusy = errors.New("the machine was too busy to show anything; run it again when it is idle")

// pathNamed is the alert the demo waits for.
const pathNamed = "GrayfailPathNamed"

// faultyLeg is the one whose replies get lost.
const faultyLeg = lab.LegB

func (o *Options) setDefaults() error {
	root, err := lab.Root()
	if err != nil {
		return err
	}
	if o.Binary == "" {
		o.Binary = filepath.Join(root, "bin", "grayfail_exporter")
	}
	if o.Rules == "" {
		o.Rules = filepath.Join(root, "alerts", "grayfail.rules.yml")
	}
	if o.WarmUp == 0 {
		o.WarmUp = 15
	}
	if o.Blocks == 0 {
		o.Blocks = 10
	}
	if o.Loss == nil {
		o.Loss = []float64{1, 5}
	}
	return nil
}

// conditions of the campaign: what part of one worker's replies is lost.
func (o *Options) conditions() []trial.Condition {
	out := []trial.Condition{{Name: "0%"}}
	for _, percent := range o.Loss {
		out = append(out, trial.Condition{
			Name: fmt.Sprintf("%g%%", percent),
			Faults: []func(*lab.Cluster) (lab.Injector, error){
				func(c *lab.Cluster) (lab.Injector, error) { return c.NewLoss(faultyLeg, lab.Replies, percent) },
			},
		})
	}
	return out
}

// Run is the whole demo. What it started is gone when it returns.
func Run(ctx context.Context, o Options, out io.Writer) (err error) {
	if err := o.setDefaults(); err != nil {
		return err
	}
	for _, path := range []string{o.Binary, o.Rules} { // before the lab takes its time
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%w (make build)", err)
		}
	}
	o.Lab.Log = out
	c, err := lab.Start(ctx, o.Lab)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	fmt.Fprintf(out, "lab: %s; rpc-a and rpc-b each in a network namespace of its own, congestion control %s;\n     the engine is scheduled before other programs, so that nothing but the fault slows it\n", c.EngineVersion, lab.Congestion)

	exporter, err := trial.StartExporter(ctx, c, trial.ExporterOptions{Binary: o.Binary, Record: filepath.Join(c.RunDir, "demo.jsonl.gz")})
	if err != nil {
		return err
	}
	servers, err := monitor.Start(ctx, c, o.Rules)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	fmt.Fprintln(out, "exporter, Prometheus and Alertmanager run beside the coordinator")

	report := report{out: out, cluster: c, exporter: exporter, inbox: servers.Inbox, started: time.Now(), drops: map[string]lab.Evidence{}}
	for _, cond := range o.conditions() {
		report.conditions = append(report.conditions, cond.Name)
	}
	if err := report.campaign(ctx, o); err != nil {
		return err
	}
	outcome := report.write(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if o.Keep {
		if err := keep(ctx, c, exporter, out); err != nil {
			return err
		}
	}
	return outcome
}

// report gathers the campaign's results and prints them.
type report struct {
	out      io.Writer
	cluster  *lab.Cluster
	exporter *trial.Exporter
	inbox    *monitor.Inbox
	started  time.Time
	marks    logMarks
	results  []trial.Result
	// conditions by name: the control first, the strongest fault last.
	conditions []string
	drops      map[string]lab.Evidence // by condition
}

func (r *report) campaign(ctx context.Context, o Options) (err error) {
	conds := o.conditions()
	plan := trial.Plan{WarmUp: o.WarmUp, Blocks: o.Blocks, Repeats: 3, Conditions: conds, Seed: o.Seed,
		Request: lab.RequestOptions{URL: r.exporter.ProxyURL()}}
	fmt.Fprintf(r.out, "campaign: %d requests to warm up, then %d blocks of 3 requests each at %s of %s's reply packets dropped, order by seed %d\n",
		plan.WarmUp, plan.Blocks, strings.Join(r.conditions, ", "), faultyLeg, plan.Seed)
	if r.marks, err = markLogs(r.cluster.EngineLogs()); err != nil {
		return err
	}
	left := len(conds)
	return plan.Run(ctx, r.cluster, func(a trial.Act) {
		r.results = append(r.results, a.Results...)
		for _, e := range a.Evidence {
			sum := r.drops[a.Condition]
			r.drops[a.Condition] = lab.Evidence{What: e.What, Count: sum.Count + e.Count, Total: sum.Total + e.Total}
		}
		if a.Block == 0 {
			line := trial.Summarise(a.Results, []string{a.Condition})[0]
			fmt.Fprintf(r.out, "warm-up: median %.0f tok/s (%.0f-%.0f)\n", line.Median, line.Min, line.Max)
			return
		}
		if left == len(conds) {
			fmt.Fprintf(r.out, "block %2d/%d", a.Block, plan.Blocks)
		}
		fmt.Fprintf(r.out, "  %s:", a.Condition)
		for _, result := range a.Results {
			fmt.Fprintf(r.out, " %3.0f", result.Rate())
		}
		if left--; left == 0 {
			left = len(conds)
			fmt.Fprintln(r.out, " tok/s")
		}
	})
}

// write prints the report; its error says what was not as it should be.
func (r *report) write(ctx context.Context) error {
	var failed []string
	fail := func(format string, args ...any) {
		failed = append(failed, fmt.Sprintf(format, args...))
	}
	rows, err := r.exporter.AwaitRows(ctx, event.PhaseDecode, len(r.results))
	if err != nil {
		fail("%v", err)
	}
	trial.Join(r.results, rows)

	names := r.conditions
	fmt.Fprintln(r.out)
	_ = trial.WriteTable(r.out, trial.Summarise(r.results, names))
	for _, name := range names[1:] {
		fmt.Fprintf(r.out, "at %s: %s\n", name, r.drops[name])
		r.writeNamed(name)
	}

	fmt.Fprintf(r.out, "\nAlertmanager delivered to our webhook:\n")
	wait, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if a, ok := r.inbox.Wait(wait, pathNamed); ok {
		a.Write(r.out)
		if a.Labels["leg"] != faultyLeg {
			fail("alert %s names leg %q", pathNamed, a.Labels["leg"])
		}
	} else {
		fmt.Fprintf(r.out, "  nothing\n")
		fail("no alert %s was delivered", pathNamed)
	}

	fmt.Fprintln(r.out)
	lines, tell, err := r.marks.since()
	if err != nil {
		fail("engine logs: %v", err)
	}
	fmt.Fprintf(r.out, "engine's logs: %d lines during the campaign, %d of them hint at a fault\n", lines, len(tell))
	for _, line := range tell[:min(3, len(tell))] {
		fmt.Fprintf(r.out, "  %s\n", line)
	}
	played := campaign{control: names[0], strong: names[len(names)-1], faulty: faultyLeg, results: r.results}
	for _, f := range played.check() {
		mark := "ok    "
		if !f.ok {
			mark = "MISSED"
			fail("%s", f.what)
		}
		fmt.Fprintf(r.out, "%s %s\n", mark, f.what)
	}
	fmt.Fprintf(r.out, "took %.0f s; recording %s (grayfail_exporter replay reads it), logs in %s\n",
		time.Since(r.started).Seconds(), r.exporter.Record, r.cluster.RunDir)
	if failed == nil {
		return nil
	}
	if busy := played.unsteady(); busy != "" {
		return fmt.Errorf("%w: %s", ErrBusy, busy)
	}
	return fmt.Errorf("%w: %s", ErrNotShown, strings.Join(failed, "; "))
}

// writeNamed prints which leg was named for the slow requests of a condition.
func (r *report) writeNamed(condition string) {
	named := map[string]int{}
	for _, result := range trial.Of(r.results, condition) {
		if result.Row != nil && result.Row.Verdict == event.VerdictSlow {
			named[cmp.Or(result.Row.Leg, "no leg")]++
		}
	}
	for _, leg := range slices.Sorted(maps.Keys(named)) {
		fmt.Fprintf(r.out, "  %d slow, named: %s", named[leg], leg)
		score := trial.ScoreOf(trial.Of(r.results, condition), trial.Usual{}, faultyLeg)
		if leg == faultyLeg && len(score.Shares) > 0 {
			n := len(score.Shares)
			fmt.Fprintf(r.out, ", with %.2f of the excess time in the median (%.2f to %.2f)", trial.Median(score.Shares), score.Shares[0], score.Shares[n-1])
		}
		fmt.Fprintln(r.out)
	}
}
