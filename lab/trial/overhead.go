package trial

import (
	"context"
	"fmt"
	"math"
	"time"

	"grayfail/lab"
)

// Pair is one measurement with the exporter running and one without it, close
// to each other in time: tokens per second of decode, over the same number of
// requests.
type Pair struct{ With, Without float64 }

// Overhead compares the engine's own decode rate with and without the exporter
// in pairs, whose order alternates. Requests go past the proxy: what is
// measured is what watching costs.
type Overhead struct {
	Pairs    int
	Requests int // in each half of a pair
	Exporter ExporterOptions
	// Watch, where set, is called after the requests of each half with exporter.
	Watch func(e *Exporter, took time.Duration) error
}

// Run measures; pairs measured before an error are returned with it.
func (o *Overhead) Run(ctx context.Context, c *lab.Cluster, each func(int, Pair)) (pairs []Pair, err error) {
	for i := range o.Pairs {
		var p Pair
		for half := range 2 {
			if with := (i+half)%2 == 0; with {
				p.With, err = o.with(ctx, c)
			} else {
				p.Without, err = o.rate(ctx, c)
			}
			if err != nil {
				return pairs, fmt.Errorf("pair %d: %w", i+1, err)
			}
		}
		pairs = append(pairs, p)
		each(i+1, p)
	}
	return pairs, nil
}

func (o *Overhead) with(ctx context.Context, c *lab.Cluster) (float64, error) {
	e, err := StartExporter(ctx, c, o.Exporter)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	rate, err := o.rate(ctx, c)
	if err == nil && o.Watch != nil {
		err = o.Watch(e, time.Since(start))
	}
	if stopped := e.Stop(); err == nil {
		err = stopped
	}
	return rate, err
}

// rate is tokens over time, summed over the requests. One more goes before
// them: in one half the exporter has just started, in the other just ended.
func (o *Overhead) rate(ctx context.Context, c *lab.Cluster) (float64, error) {
	tokens, seconds := 0, 0.0
	for i := range o.Requests + 1 {
		a := c.Request(ctx, lab.RequestOptions{})
		if a.Err != nil {
			return 0, a.Err
		}
		if i == 0 {
			continue
		}
		tokens += a.Tokens
		seconds += a.DecodeSeconds
	}
	return float64(tokens) / seconds, nil
}

// Difference is the mean over the pairs of (with - without) / without, and its
// standard error.
func Difference(pairs []Pair) (mean, standardError float64) {
	n := float64(len(pairs))
	if n < 2 {
		return math.NaN(), math.NaN()
	}
	for _, p := range pairs {
		mean += (p.With/p.Without - 1) / n
	}
	sum := 0.0
	for _, p := range pairs {
		d := p.With/p.Without - 1 - mean
		sum += d * d
	}
	return mean, math.Sqrt(sum / (n - 1) / n)
}
