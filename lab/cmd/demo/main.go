// Command demo is `make demo`: see package lab/demo.
//
// KEEP=1 leaves everything running after the report. ENGINE=standin replaces
// llama.cpp by the labelled stand-in. SEED orders the blocks.
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

	"golang.org/x/sys/unix"

	"grayfail/lab"
	"grayfail/lab/demo"
)

// Exit codes: 1 when the exporter failed at its job or nothing could be told, 2 when the demo could not
// run, 130 after an interrupt.
const (
	exitNotShown    = 1
	exitCannot      = 2
	exitInterrupted = 130
)

func main() { os.Exit(run(os.Stdout, os.Stderr)) }

func run(stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if os.Getenv("MAKELEVEL") != "" {
		// If make is killed, what it started ends as well.
		_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0)
	}
	o, err := options()
	if err == nil {
		err = demo.Run(ctx, o, stdout)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, demo.ErrNotShown), errors.Is(err, demo.ErrBusy):
		fmt.Fprintln(stderr, "demo:", err)
		return exitNotShown
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "\ndemo: interrupted; everything it started has been removed")
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintln(stderr, "demo:", err)
		}
		return exitInterrupted
	default:
		fmt.Fprintln(stderr, "demo:", err)
		return exitCannot
	}
}

func options() (o demo.Options, err error) {
	if o.Lab.Engine, err = lab.EngineFromEnv(); err != nil {
		return o, err
	}
	o.Lab.Instance = "demo"
	o.Keep = os.Getenv("KEEP") != "" && os.Getenv("KEEP") != "0"
	o.Seed = 1
	if text := os.Getenv("SEED"); text != "" {
		if o.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return o, fmt.Errorf("SEED=%s: a whole number is wanted", text)
		}
	}
	return o, nil
}
