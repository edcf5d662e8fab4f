package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"grayfail/lab"
	"grayfail/lab/cost"
)

// watched is what one program did over time.
type watched struct {
	resident, goroutines, files []cost.Point
	cpu                         time.Duration // a second
	rate, lost                  float64
}

func watch(ctx context.Context, o Options, config string, start func(context.Context, *lab.Cluster, *subject) (*generator, error)) (_ *watched, err error) {
	c, err := room(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	s, err := exporter(ctx, c, o, 0, config)
	if err != nil {
		return nil, err
	}
	g, err := start(ctx, c, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	w := &watched{}
	return w, w.run(ctx, c, s, g, time.Duration(o.Rounds*loadSeconds)*time.Second)
}

func (w *watched) run(ctx context.Context, c *lab.Cluster, s *subject, g *generator, length time.Duration) error {
	before, err := cpuTime(s.PID())
	if err != nil {
		return err
	}
	start, first := time.Now(), g.events()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for time.Since(start) < length {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		body, err := c.Fetch(ctx, s.url)
		if err != nil {
			return err
		}
		if err := w.look(s.PID(), body, time.Since(start).Seconds()); err != nil {
			return err
		}
		if w.lost, err = g.lost(body); err != nil {
			return err
		}
	}
	seconds := time.Since(start).Seconds()
	after, err := cpuTime(s.PID())
	w.cpu = time.Duration(float64(after-before) / seconds)
	w.rate = float64(g.events()-first) / seconds
	return err
}

func (w *watched) look(pid int, body []byte, at float64) error {
	resident, err := residentBytes(pid)
	if err != nil {
		return err
	}
	files, err := openFiles(pid)
	if err != nil {
		return err
	}
	goroutines, err := sample(body, "go_goroutines")
	if err != nil {
		return err
	}
	w.resident = append(w.resident, cost.Point{X: at, Y: float64(resident) / (1 << 20)})
	w.goroutines = append(w.goroutines, cost.Point{X: at, Y: goroutines})
	w.files = append(w.files, cost.Point{X: at, Y: float64(files)})
	return nil
}

func (w *watched) row(name string) []string {
	third := len(w.resident) / 3
	return []string{
		name, fmt.Sprintf("%.0f", w.rate), fmt.Sprintf("%.0f", w.lost), ms(w.cpu), fmt.Sprintf("%.0f MB", largest(w.resident)),
		fmt.Sprintf("%.2f", mean(w.resident[len(w.resident)-third:])/mean(w.resident[:third])),
		fmt.Sprintf("%.0f to %.0f", w.goroutines[0].Y, w.goroutines[len(w.goroutines)-1].Y),
		fmt.Sprintf("%.0f to %.0f", w.files[0].Y, w.files[len(w.files)-1].Y),
	}
}

func largest(points []cost.Point) (most float64) {
	for _, p := range points {
		most = max(most, p.Y)
	}
	return most
}

func mean(points []cost.Point) (sum float64) {
	for _, p := range points {
		sum += p.Y / float64(len(points))
	}
	return sum
}
