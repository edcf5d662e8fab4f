package measure

import (
	"context"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"grayfail/lab"
	"grayfail/lab/cost"
	"grayfail/lab/trial"
)

const (
	// requestsPerHalf of a pair.
	requestsPerHalf = 5
	// warmUp: the engine's own first requests are slower.
	warmUp = 5
)

const engineMethod = "The real llama.cpp, a model of random weights over two RPC workers, each in a network namespace of its own. A pair is five requests with the exporter running and five without, past its proxy; one more before each half is not counted; the order alternates from pair to pair. BPF time is the kernel's own (BPF_ENABLE_STATS) while requests ran, and part of one core. The kernel's statistics read a clock twice a run and count most of that as the program's: an empty program at tcp_probe, in the same run, says how much. Programs see every TCP segment of the machine, the workers' and other people's too."

// Engine measures the token rate of the real engine with and without the
// exporter, and what the BPF programs take of the time.
func Engine(ctx context.Context, o Options) (cost.Section, error) {
	s := cost.Section{ID: "engine", Title: "The engine with and without the exporter", Method: engineMethod}
	return s, timed(ctx, &s, func() error { return engine(ctx, o, &s) })
}

func engine(ctx context.Context, o Options, s *cost.Section) (err error) {
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return fmt.Errorf("BPF statistics: %w", err)
	}
	defer stats.Close()
	floor, err := trial.AttachFloor()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, floor.Close()) }()
	c, err := lab.Start(ctx, lab.Options{Instance: instance, Fair: true, Log: o.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for range warmUp {
		if a := c.Request(ctx, lab.RequestOptions{}); a.Err != nil {
			return a.Err
		}
	}
	var programs trial.BPFCosts
	rate := 0.0
	run := trial.Overhead{Pairs: o.Pairs, Requests: requestsPerHalf, Exporter: trial.ExporterOptions{Binary: o.Exporter}, Watch: programs.Add}
	pairs, err := run.Run(ctx, c, func(i int, p trial.Pair) {
		rate += p.With / float64(o.Pairs)
		fmt.Fprintf(o.Log, "pair %2d: %.1f tok/s with, %.1f without\n", i, p.With, p.Without)
	})
	if err != nil {
		return err
	}
	empty, err := floor.Program()
	if err != nil {
		return err
	}
	s.Method += fmt.Sprintf(" The engine: %s.", c.EngineVersion)
	tokenRate(s, pairs)
	bpfTime(s, &programs, empty, rate)
	return nil
}

func tokenRate(s *cost.Section, pairs []trial.Pair) {
	mean, se := trial.Difference(pairs)
	low, high := mean-1.96*se, mean+1.96*se
	with, without := 0.0, 0.0
	for _, p := range pairs {
		with += p.With / float64(len(pairs))
		without += p.Without / float64(len(pairs))
	}
	interval := fmt.Sprintf("%+.2f%% (95%%: %+.2f%% to %+.2f%%)", 100*mean, 100*low, 100*high)
	s.Tables = append(s.Tables, cost.Table{
		Title: "Token rate", Header: []string{"pairs", "with, tok/s", "without, tok/s", "mean of the pairs' differences"},
		Rows: [][]string{{fmt.Sprint(len(pairs)), fmt.Sprintf("%.1f", with), fmt.Sprintf("%.1f", without), interval}},
	})
	t := cost.Target{What: "token rate with against without", Aim: "95% interval contains 0 and excludes -3%", Got: interval, Met: low <= 0 && high >= 0 && low > -0.03}
	switch {
	case t.Met:
	case low > 0:
		t.Why = "the interval is above 0: chance, since watching cannot make an engine faster"
	case high < 0:
		t.Why = "the exporter cost the engine something that this many pairs can show"
	default:
		t.Why = "the interval is wide: the engine's own rate moves from request to request, on a machine that others use too"
	}
	s.Targets = append(s.Targets, t)
}

func bpfTime(s *cost.Section, programs *trial.BPFCosts, floor trial.BPFProgram, rate float64) {
	table := cost.Table{
		Title: "BPF programs", Header: []string{"program", "runs a token", "ns a run", "without measuring", "share of wall time", "without measuring"},
		Note: fmt.Sprintf("An empty program: %d ns a run. %.1f s of wall time at %.0f tokens a second: larger models have slower tokens, and so fewer events a second.", floor.PerRun().Nanoseconds(), programs.Wall.Seconds(), rate),
	}
	row := func(name string, p trial.BPFProgram) {
		net := p.Net(floor)
		perRun := int64(0)
		if p.Runs > 0 {
			perRun = net.Nanoseconds() / int64(p.Runs)
		}
		table.Rows = append(table.Rows, []string{
			name, fmt.Sprintf("%.1f", float64(p.Runs)/programs.Wall.Seconds()/rate), fmt.Sprint(p.PerRun().Nanoseconds()), fmt.Sprint(perRun),
			fmt.Sprintf("%.3f%%", 100*programs.Share(p.RunTime)), fmt.Sprintf("%.3f%%", 100*programs.Share(net)),
		})
	}
	for _, p := range programs.Programs {
		row("`"+p.Name+"`", p)
	}
	total := programs.Total()
	row("together", total)
	s.Tables = append(s.Tables, table)
	gross, net := programs.Share(total.RunTime), programs.Share(total.Net(floor))
	t := cost.Target{
		What: "BPF at the engine's rate", Aim: "at most 0.5% of wall time", Met: gross <= 0.005,
		Got: fmt.Sprintf("%.2f%%, of which measuring is %.2f%%", 100*gross, 100*(gross-net)),
	}
	if !t.Met {
		t.Why = fmt.Sprintf("what the programs themselves take is %.2f%%; the rest is the kernel reading its clock for these statistics, which it does only while they are on", 100*net)
	}
	s.Targets = append(s.Targets, t)
}
