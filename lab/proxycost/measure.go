package proxycost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Options of a measurement.
type Options struct {
	Binary string        // the exporter's
	Rounds int           // in each, every way is measured once, in changing order
	Idle   time.Duration // to see what the exporter does without a stream
	Loads  []Load
	Log    io.Writer // a line for each round
}

// Load is a number of streams at once; each has Chunks, one each Interval.
type Load struct {
	Streams, Chunks int
	Interval        time.Duration
}

// Ways that a stream can take, in the order of the table.
const (
	Direct   = "no proxy"
	Nginx    = "nginx"
	Exporter = "grayfail_exporter"
)

// Row is one way under one load.
type Row struct {
	Load
	Way string
	// Each is the median of the rounds: P50 and P99 of a chunk's way from the
	// engine to the client, CPU of the proxy for a chunk.
	P50, P99, CPU time.Duration
	Measured      int // chunks
}

// Result of a measurement: for each load a row of each way.
type Result struct {
	Rows []Row
	// Idle is the exporter's CPU time a second without a stream, in seconds. It
	// is not in the rows.
	Idle float64
}

// Measure runs every load through every way.
func Measure(ctx context.Context, o Options) (result Result, err error) {
	dir, err := os.MkdirTemp("", "proxycost")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	e, err := newEngine()
	if err != nil {
		return result, err
	}
	defer e.Close()
	nginx, err := startNginx(ctx, dir, e.address)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, nginx.stop()) }()
	exporter, err := startExporter(ctx, dir, o.Binary, e.address)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, exporter.stop()) }()
	if result.Idle, err = exporter.idle(ctx, o.Idle); err != nil {
		return result, err
	}
	for _, load := range o.Loads {
		e.chunks, e.interval = load.Chunks, load.Interval
		ways := []*way{
			{name: Direct, address: e.address}, {name: Nginx, address: nginx.address, proxy: nginx},
			{name: Exporter, address: exporter.address, proxy: exporter, idle: result.Idle},
		}
		for round := range o.Rounds {
			for i := range ways {
				if err := ways[(i+round)%len(ways)].measure(ctx, e, load.Streams); err != nil {
					return result, err
				}
			}
			fmt.Fprintf(o.Log, "streams: %d, round %d of %d\n", load.Streams, round+1, o.Rounds)
		}
		for _, w := range ways {
			result.Rows = append(result.Rows, w.row(load))
		}
	}
	return result, nil
}

// way collects what was measured through one address.
type way struct {
	name, address string
	proxy         *proxy // nil for none
	idle          float64
	chunks        int
	p50, p99, cpu []time.Duration // of each round
}

func (w *way) measure(ctx context.Context, e *engine, streams int) error {
	start := time.Now()
	used, err := w.used()
	if err != nil {
		return err
	}
	took, err := e.run(ctx, w.address, streams)
	if err != nil {
		return err
	}
	now, err := w.used()
	if err != nil {
		return err
	}
	slices.Sort(took)
	n := len(took)
	w.chunks += n
	w.p50, w.p99 = append(w.p50, took[n/2]), append(w.p99, took[n*99/100])
	w.cpu = append(w.cpu, (now-used-time.Duration(w.idle*float64(time.Since(start))))/time.Duration(n))
	return nil
}

func (w *way) used() (time.Duration, error) {
	if w.proxy == nil {
		return 0, nil
	}
	return w.proxy.cpu()
}

func (w *way) row(load Load) Row {
	return Row{Load: load, Way: w.name, P50: median(w.p50), P99: median(w.p99), CPU: median(w.cpu), Measured: w.chunks}
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}

// idle is the CPU time a second while nothing passes.
func (p *proxy) idle(ctx context.Context, over time.Duration) (float64, error) {
	start := time.Now()
	used, err := p.cpu()
	if err != nil {
		return 0, err
	}
	select {
	case <-time.After(over):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	now, err := p.cpu()
	return (now - used).Seconds() / time.Since(start).Seconds(), err
}
