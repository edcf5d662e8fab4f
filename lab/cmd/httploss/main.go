// Command httploss measures what packet loss does to answers of an inference
// server, by their size, through the exporter's proxy, and writes
// docs/http-loss.md.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kingpin/v2"

	"grayfail/lab/httploss"
	"grayfail/lab/proxycost"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := kingpin.New("httploss", "What packet loss does to answers, by their size.").Terminate(nil)
	binary := app.Flag("exporter", "The exporter's binary.").Default("bin/grayfail_exporter").String()
	out := app.Flag("out", "The page to write; none: standard output.").String()
	blocks := app.Flag("blocks", "Blocks of three requests for each size and loss.").Default("10").Int()
	if _, err := app.Parse(args); err != nil {
		fmt.Fprintln(stderr, "httploss:", err)
		return 2
	}
	cells, err := httploss.Measure(ctx, httploss.Options{
		Binary: *binary, Sizes: []int{1000, 25_000, 227_000}, Loss: []float64{0, 0.1, 1, 2},
		Blocks: *blocks, Requests: 3, Seed: 1, Log: stderr,
	})
	if err == nil {
		page := httploss.Page(cells, "Machine: "+proxycost.Machine())
		if *out == "" {
			_, err = io.WriteString(stdout, page)
		} else {
			err = os.WriteFile(*out, []byte(page), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "httploss:", err)
		return 1
	}
	return 0
}
