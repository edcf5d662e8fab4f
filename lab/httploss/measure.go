package httploss

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"grayfail/event"
	"grayfail/lab"
)

// Options say what to measure.
type Options struct {
	Binary string // the exporter's
	// Sizes in bytes of the answer's body; Loss in percent of its packets.
	Sizes []int
	Loss  []float64
	// Blocks of Requests for each cell, in an order that Seed shuffles.
	Blocks, Requests int
	Seed             uint64
	Log              io.Writer
}

// RTT and Rate of the path without loss: those of the field's figures.
const (
	RTT  = 10 * time.Millisecond
	Rate = 100_000_000 // bit/s
)

// Cell is one size under one loss.
type Cell struct {
	Size int
	Loss float64
	// Took is each request's time as its client had it; Stages sums the
	// exporter's measure of each stage over Counted calls.
	Took []time.Duration
	// Kept is the same past the proxy, on one connection that is kept.
	Kept    []time.Duration
	Stages  map[event.HTTPStage]time.Duration
	Counted int
	// Dropped of Packets on the way back.
	Dropped, Packets uint64
}

// Measure stages the network, starts the exporter and plays all cells.
func Measure(ctx context.Context, o Options) (cells []*Cell, err error) {
	c, err := lab.Start(ctx, lab.Options{Instance: "httploss", Engine: lab.EngineNone, Relay: true, Log: o.Log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	s, err := stage(ctx, c, o.Binary)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, size := range o.Sizes {
		for _, loss := range o.Loss {
			cells = append(cells, &Cell{Size: size, Loss: loss, Stages: make(map[event.HTTPStage]time.Duration)})
		}
	}
	random := rand.New(rand.NewPCG(o.Seed, 0))
	for block := range o.Blocks {
		for _, i := range random.Perm(len(cells)) {
			if err := s.play(ctx, cells[i], o.Requests); err != nil {
				return nil, fmt.Errorf("%d bytes at %g%%: %w", cells[i].Size, cells[i].Loss, err)
			}
		}
		fmt.Fprintf(o.Log, "block %d of %d\n", block+1, o.Blocks)
	}
	return cells, nil
}

// staging is the network with server and exporter.
type staging struct {
	cluster *lab.Cluster
	server  *http.Server
	direct  string // the server's address
}

const (
	proxyAddr    = "127.0.0.1:8081"
	exporterAddr = "127.0.0.1:10550"
)

func stage(ctx context.Context, c *lab.Cluster, binary string) (*staging, error) {
	link, err := c.Link(lab.LegB)
	if err != nil {
		return nil, err
	}
	addr := fmt.Sprintf("%s:9000", link.WorkerAddr.Addr())
	l, err := link.Worker.Listen(addr)
	if err != nil {
		return nil, err
	}
	s := &staging{cluster: c, direct: addr, server: &http.Server{Handler: http.HandlerFunc(serve), ReadHeaderTimeout: time.Minute}}
	go func() { _ = s.server.Serve(l) }() // until close
	rate, err := c.NewRateLimit(lab.LegB, lab.Replies, Rate)
	if err == nil {
		err = c.Inject(ctx, rate)
	}
	for _, d := range []lab.Direction{lab.Requests, lab.Replies} {
		if err == nil {
			err = delay(ctx, c, d)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.server.Close())
	}
	config := filepath.Join(c.RunDir, "httploss.yml")
	text := fmt.Sprintf("requests:\n  proxies:\n  - {name: main, listen: %q, upstream: \"http://%s\"}\n", proxyAddr, addr)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, errors.Join(err, s.server.Close())
	}
	p, err := c.Spawn(lab.Command{Name: "exporter", Argv: []string{binary, "serve", "--config.file=" + config, "--web.listen-address=" + exporterAddr}})
	if err == nil {
		wait, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		err = p.WaitFor(wait, "it was ready", func(ctx context.Context) error { return c.Get(ctx, "http://"+exporterAddr+"/-/ready") })
	}
	if err != nil {
		return nil, errors.Join(err, s.server.Close())
	}
	return s, nil
}

// delay holds each packet of one direction for half of the RTT.
func delay(ctx context.Context, c *lab.Cluster, d lab.Direction) error {
	f, err := c.NewImpair(lab.LegB, d, lab.Impairment{Delay: RTT / 2})
	if err != nil {
		return err
	}
	return c.Inject(ctx, f)
}

func (s *staging) close() error { return s.server.Close() }

// play sends n requests of one cell.
func (s *staging) play(ctx context.Context, cell *Cell, n int) (err error) {
	kept := s.cluster.NewClient()
	defer kept.CloseIdleConnections()
	for range 3 { // its window opens before anything is lost
		if _, err := request(ctx, kept, s.direct, cell.Size); err != nil {
			return err
		}
	}
	if cell.Loss > 0 {
		loss, err := s.cluster.NewLoss(lab.LegB, lab.Replies, cell.Loss)
		if err != nil {
			return err
		}
		if err := s.cluster.Inject(ctx, loss); err != nil {
			return err
		}
		defer func() {
			acted, stop := s.cluster.Eject(loss)
			cell.Dropped, cell.Packets = cell.Dropped+acted.Count, cell.Packets+acted.Total
			if !errors.Is(stop, lab.ErrDidNotAct) { // a few packets may all pass; the table says how many did not
				err = errors.Join(err, stop)
			}
		}()
	}
	before, err := s.stages(ctx)
	if err != nil {
		return err
	}
	for range n {
		took, err := request(ctx, s.cluster.HTTP(), proxyAddr, cell.Size)
		if err != nil {
			return err
		}
		cell.Took = append(cell.Took, took)
	}
	for range n {
		took, err := request(ctx, kept, s.direct, cell.Size)
		if err != nil {
			return err
		}
		cell.Kept = append(cell.Kept, took)
	}
	after, err := s.stages(ctx)
	if err != nil {
		return err
	}
	for stage, sum := range after.sums {
		cell.Stages[stage] += sum - before.sums[stage]
	}
	cell.Counted += int(after.calls - before.calls)
	return nil
}

func request(ctx context.Context, client *http.Client, addr string, size int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	url := fmt.Sprintf("http://%s/v1/completions?size=%d", addr, size)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"model":"padding","prompt":"x"}`))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	start := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	got, err := io.Copy(io.Discard, resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || got != int64(size)) {
		err = fmt.Errorf("%s, %d of %d bytes", resp.Status, got, size)
	}
	return time.Since(start), err
}
