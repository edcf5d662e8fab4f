// Command grayfail_exporter names the leg that ate a slow inference request's
// time.
//
// In: kernel counters and events, requests from proxies and the push API, or
// recordings. Out: Prometheus metrics, an HTTP API, log lines, replay results.
// This package only wires: the rules live in detector, the sources in
// collector and ebpf, the outputs in export.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"grayfail/internal/privilege"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(program{rights{drop: privilege.Drop}, boundGarbage}.run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
