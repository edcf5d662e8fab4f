package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"grayfail/lab"
)

// generator makes events until it is stopped.
type generator struct {
	events func() uint64
	// lost reads from an answer what was refused or lost.
	lost func(body []byte) (float64, error)
	stop func() error
}

func exchanging(ctx context.Context, c *lab.Cluster, _ *subject) (*generator, error) {
	f, err := connect(ctx, c.Coordinator, loadLegs)
	if err != nil {
		return nil, err
	}
	traffic, end := context.WithCancel(ctx)
	f.run(traffic, exchangesPerSecond)
	return &generator{
		events: f.exchanges.Load,
		lost:   func(body []byte) (float64, error) { return sum(body, "grayfail_events_lost_total") },
		stop:   func() error { end(); f.close(); return nil },
	}, nil
}

func pushing(ctx context.Context, c *lab.Cluster, s *subject) (*generator, error) {
	traffic, end := context.WithCancel(ctx)
	p := &pusher{client: c.HTTP(), url: strings.Replace(s.url, "/metrics", "/api/v1/requests", 1)}
	failed := make(chan error, 1)
	go func() { failed <- p.run(traffic) }()
	return &generator{
		events: p.records.Load,
		lost:   refused,
		stop: func() error {
			end()
			if err := <-failed; err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		},
	}, nil
}

// pusher posts records at its pace; what it could not post in time it makes up
// for, so a slow exporter shows as a rate below the one wanted.
type pusher struct {
	client  *http.Client
	url     string
	records atomic.Uint64
}

func (p *pusher) run(ctx context.Context) error {
	tick := time.NewTicker(time.Second * pushesPerPost / pushesPerSecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := p.post(ctx); err != nil {
			return err
		}
	}
}

func (p *pusher) post(ctx context.Context) error {
	var body bytes.Buffer
	for i := range uint64(pushesPerPost) {
		n := p.records.Load() + i
		fmt.Fprintf(&body, `{"id":"%d","model":"m%d","generated_tokens":20,"decode_tokens_per_second":%d}`+"\n", n, n%2, 25+n%3)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, &body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("push: %s: %.200s", resp.Status, said)
	}
	if err == nil {
		p.records.Add(pushesPerPost)
	}
	return err
}

// refused counts pushed records that were not taken, and those that were taken
// and then found no room.
func refused(body []byte) (float64, error) {
	lost, err := sum(body, "grayfail_events_lost_total")
	for _, result := range []string{"malformed", "duplicate", "body_limited", "body_too_large"} {
		n, missing := sample(body, fmt.Sprintf("grayfail_request_intake_total{result=%q,source=\"push\"}", result))
		lost, err = lost+n, errors.Join(err, missing)
	}
	return lost, err
}
