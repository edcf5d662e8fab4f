// Command cluster starts the lab (the real llama.cpp over two RPC workers, each
// in a network namespace) with the exporter and its proxy, makes both reachable
// from the host's loopback, and leaves it running until it is interrupted: a
// place to play campaigns at.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/alecthomas/kingpin/v2"

	"grayfail/lab"
	"grayfail/lab/trial"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := kingpin.New("cluster", "The lab with the exporter, until it is interrupted.").Terminate(nil)
	binary := app.Flag("exporter", "The exporter's binary.").Default("bin/grayfail_exporter").String()
	record := app.Flag("record", "Record to this file; replay reads it.").String()
	relay := app.Flag("relay", "Put a packet relay into each leg, which delays, and serve its control at this address: for hosts without netem. It costs CPU.").String()
	if _, err := app.Parse(args); err != nil {
		fmt.Fprintln(stderr, "cluster:", err)
		return 2
	}
	if err := serve(ctx, *binary, *record, *relay, stdout); err != nil {
		fmt.Fprintln(stderr, "cluster:", err)
		return 1
	}
	return 0
}

func serve(ctx context.Context, binary, record, relay string, out io.Writer) (err error) {
	kind, err := lab.EngineFromEnv()
	if err != nil {
		return err
	}
	c, err := lab.Start(ctx, lab.Options{Engine: kind, Relay: relay != "", Log: out})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	e, err := trial.StartExporter(ctx, c, trial.ExporterOptions{Binary: binary, Record: record})
	if err != nil {
		return err
	}
	for _, f := range []struct{ what, addr string }{
		{"exporter", trial.ExporterAddr}, {"engine, through its proxy", "127.0.0.1:" + strconv.Itoa(lab.ProxyPort)},
	} {
		addr, err := c.Forward(f.addr, f.addr)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  http://%s/  %s\n", addr, f.what)
	}
	if relay != "" {
		control, err := serveRelay(c, relay)
		if err != nil {
			return err
		}
		defer control.Close()
		fmt.Fprintf(out, "  http://%s/  the relays' control\n", relay)
	}
	fmt.Fprintf(out, "coordinator: network namespace %s\n", c.Coordinator)
	for _, l := range c.Links {
		fmt.Fprintf(out, "%s: %s here, %s in network namespace %s\n", l.Leg, l.CoordinatorDevice, l.WorkerDevice, l.Worker)
	}
	fmt.Fprintln(out, "ready; Ctrl-C ends and removes it")
	select {
	case <-ctx.Done():
		return nil
	case <-e.Exited():
		return fmt.Errorf("the exporter ended\n%s", e.Tail(10))
	}
}
