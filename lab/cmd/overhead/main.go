// Command overhead says what the exporter costs the engine it watches: the
// decode rate of the real llama.cpp with and without it, in alternating pairs,
// and the time of its BPF programs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kingpin/v2"
	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"grayfail/lab"
	"grayfail/lab/trial"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := kingpin.New("overhead", "What the exporter costs the engine it watches.").Terminate(nil)
	binary := app.Flag("exporter", "The exporter's binary.").Default("bin/grayfail_exporter").String()
	pairs := app.Flag("pairs", "Pairs of measurements.").Default("40").Int()
	requests := app.Flag("requests", "Requests in each half of a pair.").Default("5").Int()
	if _, err := app.Parse(args); err != nil {
		fmt.Fprintln(stderr, "overhead:", err)
		return 2
	}
	if err := measure(ctx, *binary, *pairs, *requests, stdout); err != nil {
		fmt.Fprintln(stderr, "overhead:", err)
		return 1
	}
	return 0
}

func measure(ctx context.Context, binary string, pairs, requests int, out io.Writer) (err error) {
	kind, err := lab.EngineFromEnv()
	if err != nil {
		return err
	}
	// Counted as long as this is open: nothing of the machine is changed.
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return fmt.Errorf("BPF statistics: %w", err)
	}
	defer stats.Close()
	c, err := lab.Start(ctx, lab.Options{Instance: "cost", Engine: kind, Fair: true, Log: out})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for range 5 { // the engine's own first requests are slower
		if a := c.Request(ctx, lab.RequestOptions{}); a.Err != nil {
			return a.Err
		}
	}
	floor, err := trial.AttachFloor()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, floor.Close()) }()
	var programs trial.BPFCosts
	o := trial.Overhead{Pairs: pairs, Requests: requests, Exporter: trial.ExporterOptions{Binary: binary}, Watch: programs.Add}
	all, err := o.Run(ctx, c, func(i int, p trial.Pair) {
		fmt.Fprintf(out, "pair %2d: %.1f tok/s with, %.1f without (%+.1f%%)\n", i, p.With, p.Without, 100*(p.With/p.Without-1))
	})
	if len(all) > 1 {
		mean, se := trial.Difference(all)
		fmt.Fprintf(out, "%s, %d pairs: with - without %+.2f%%, standard error %.2f%% (95%%: %+.2f%% to %+.2f%%)\n",
			c.EngineVersion, len(all), 100*mean, 100*se, 100*(mean-1.96*se), 100*(mean+1.96*se))
	}
	empty, unread := floor.Program()
	programs.Write(out, empty)
	return errors.Join(err, unread)
}
