// Command proxycost says what the exporter's proxy adds to a streamed token,
// beside nginx in front of the same stream, and writes docs/proxy-cost.md.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"grayfail/lab/proxycost"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := kingpin.New("proxycost", "What the proxy costs a streamed token, beside nginx.").Terminate(nil)
	binary := app.Flag("exporter", "The exporter's binary.").Default("bin/grayfail_exporter").String()
	out := app.Flag("out", "The page to write; none: standard output.").String()
	rounds := app.Flag("rounds", "How often every way is measured.").Default("9").Int()
	if _, err := app.Parse(args); err != nil {
		fmt.Fprintln(stderr, "proxycost:", err)
		return 2
	}
	result, err := proxycost.Measure(ctx, proxycost.Options{
		Binary: *binary, Rounds: *rounds, Idle: 5 * time.Second, Log: stderr,
		Loads: []proxycost.Load{
			{Streams: 1, Chunks: 400, Interval: 5 * time.Millisecond},
			{Streams: 32, Chunks: 100, Interval: 20 * time.Millisecond},
		},
	})
	if err == nil {
		page := result.Page(proxycost.Machine())
		if *out == "" {
			_, err = io.WriteString(stdout, page)
		} else {
			err = os.WriteFile(*out, []byte(page), 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "proxycost:", err)
		return 1
	}
	return 0
}
