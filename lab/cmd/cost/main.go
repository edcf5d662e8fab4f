// Command cost measures what the exporter costs beside what people run already
// and writes docs/cost.md with its plots. Sections that are not measured anew
// stay as they were: their figures are kept in docs/cost/cost.json.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kingpin/v2"

	"grayfail/lab/cost"
	"grayfail/lab/cost/measure"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// flags of the command.
type flags struct {
	options measure.Options
	only    []string
	nodes   []string
	docs    string
	bench   string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f := flags{options: measure.Options{Log: stdout}}
	app := kingpin.New("cost", "What the exporter costs beside what people run already.").Terminate(nil)
	app.Flag("exporter", "The exporter's binary.").Default("bin/grayfail_exporter").StringVar(&f.options.Exporter)
	app.Flag("node-exporter", "NAME=BINARY of a node_exporter to compare with; again for more.").StringsVar(&f.nodes)
	app.Flag("rounds", "Rounds of each comparison, one a second.").Default("20").IntVar(&f.options.Rounds)
	app.Flag("pairs", "Pairs of the token rate with and without.").Default("60").IntVar(&f.options.Pairs)
	app.Flag("bench", "Output of go test -bench, for growth and hooks.").StringVar(&f.bench)
	app.Flag("docs", "Folder of the report.").Default("docs").StringVar(&f.docs)
	app.Flag("only", "A section to measure, again for more; without, all are.").EnumsVar(&f.only, append(names(), "nothing")...)
	if _, err := app.Parse(args); err != nil {
		fmt.Fprintln(stderr, "cost:", err)
		return 2
	}
	if err := f.work(ctx, stdout); err != nil {
		fmt.Fprintln(stderr, "cost:", err)
		return 1
	}
	return 0
}

// sections in the report's order.
var sections = []struct {
	name    string
	measure func(context.Context, measure.Options) (cost.Section, error)
}{
	{"qdisc", measure.Qdisc},
	{"scrape", measure.Scrape},
	{"engine", measure.Engine},
	{"load", measure.Load},
}

func names() (all []string) {
	for _, s := range sections {
		all = append(all, s.name)
	}
	return all
}

func (f *flags) work(ctx context.Context, out io.Writer) error {
	for _, n := range f.nodes {
		name, path, ok := strings.Cut(n, "=")
		if !ok {
			return fmt.Errorf("--node-exporter=%s: want NAME=BINARY", n)
		}
		f.options.NodeExporters = append(f.options.NodeExporters, measure.Named{Name: name, Path: path})
	}
	r, err := cost.Open(f.docs)
	if err != nil {
		return err
	}
	for _, s := range sections {
		if len(f.only) > 0 && !slices.Contains(f.only, s.name) {
			continue
		}
		fmt.Fprintf(out, "cost: measuring %s\n", s.name)
		done, err := s.measure(ctx, f.options)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if err := r.Put(done); err != nil { // each is kept as soon as it is whole
			return err
		}
	}
	if f.bench == "" {
		return r.Write()
	}
	data, err := os.Open(f.bench)
	if err != nil {
		return err
	}
	defer data.Close()
	s := measure.Benchmarks(ctx)
	if s.Curves, s.Tables, s.Targets, err = cost.Bench(data); err != nil {
		return fmt.Errorf("%s: %w", f.bench, err)
	}
	return r.Put(s)
}
