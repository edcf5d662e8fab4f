package measure

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"grayfail/lab"
	"grayfail/lab/cost"
)

const scrapeMethod = "One namespace with n legs, each a TCP connection with 10 exchanges a second, and both programs running whole: ours, and node_exporter with its default collectors. Every second all scrapers of a program ask at the same moment, first ours, then the other's. Latency is over all answers."

// Scrape measures whole scrapes at 16 and 256 legs by one scraper and by 20.
func Scrape(ctx context.Context, o Options) (cost.Section, error) {
	s := cost.Section{ID: "scrape", Title: "A whole scrape", Method: scrapeMethod}
	return s, timed(ctx, &s, func() error {
		table := cost.Table{
			Title:  "Latency and size",
			Header: []string{"legs", "scrapers", "program", "median", "p99", "median, ratio to ours", "plain", "gzip", "CPU a second"},
		}
		curve := cost.Curve{Name: "scrape by one", Size: "legs", Unit: "ms"}
		for _, legs := range []int{16, 64, 256} {
			err := scrapeSize(ctx, o, legs, func(scrapers int, all []scrapeResult) {
				for _, r := range all {
					table.Rows = append(table.Rows, r.row(legs, scrapers, all[0]))
				}
				if scrapers == 1 {
					curve.Points = append(curve.Points, cost.Point{X: float64(legs), Y: millis(all[0].median)})
				}
			})
			if err != nil {
				return fmt.Errorf("%d legs: %w", legs, err)
			}
		}
		s.Tables, s.Curves = []cost.Table{table}, []cost.Curve{curve}
		return nil
	})
}

type scrapeResult struct {
	name        string
	median, p99 time.Duration
	plain, gzip int
	cpu         time.Duration // a second
}

func (r *scrapeResult) row(legs, scrapers int, our scrapeResult) []string {
	return []string{
		strconv.Itoa(legs), strconv.Itoa(scrapers), r.name, ms(r.median), ms(r.p99), fmt.Sprintf("%.2f", r.median.Seconds()/our.median.Seconds()),
		fmt.Sprintf("%d kB", r.plain/1000), fmt.Sprintf("%d kB", r.gzip/1000), ms(r.cpu),
	}
}

func scrapeSize(ctx context.Context, o Options, legs int, each func(scrapers int, all []scrapeResult)) (err error) {
	c, err := room(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	subjects, stop, err := wholePrograms(ctx, c, o, legs)
	if err != nil {
		return err
	}
	defer stop()
	for _, scrapers := range []int{1, 20} {
		var all []scrapeResult
		for _, s := range subjects {
			r, err := scrapeTogether(ctx, c, o, s, scrapers)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			all = append(all, r)
		}
		each(scrapers, all)
	}
	return nil
}

// wholePrograms starts the exporter, with its legs, and the last of the
// node_exporters with what it does by default.
func wholePrograms(ctx context.Context, c *lab.Cluster, o Options, legs int) (_ []*subject, stop func(), err error) {
	our, err := exporter(ctx, c, o, 0, "{}")
	if err != nil {
		return nil, nil, err
	}
	subjects := []*subject{our}
	if n := len(o.NodeExporters); n > 0 {
		node := o.NodeExporters[n-1]
		s, err := spawn(ctx, c, 1, node.Name, node.Path)
		if err != nil {
			return nil, nil, err
		}
		subjects = append(subjects, s)
	}
	f, err := connect(ctx, c.Coordinator, legs)
	if err != nil {
		return nil, nil, err
	}
	traffic, end := context.WithCancel(ctx)
	f.run(traffic, 10)
	stop = func() { end(); f.close() }
	// Every leg has had an exchange: all its series are there.
	err = our.WaitFor(ctx, "all legs had exchanges", func(ctx context.Context) error {
		body, err := c.Fetch(ctx, our.url)
		if err != nil {
			return err
		}
		if n := seriesOf(body, "grayfail_tcp_exchange_seconds_count{"); n < legs {
			return fmt.Errorf("%d of %d legs", n, legs)
		}
		return nil
	})
	if err != nil {
		stop()
		return nil, nil, err
	}
	return subjects, stop, nil
}

// scrapeTogether asks once a second from all scrapers at once.
func scrapeTogether(ctx context.Context, c *lab.Cluster, o Options, s *subject, scrapers int) (r scrapeResult, err error) {
	r.name = s.name
	plain, err := scrape(ctx, c.HTTP(), s.url, true)
	if err != nil {
		return r, err
	}
	r.plain = len(plain.body)
	before, err := cpuTime(s.PID())
	if err != nil {
		return r, err
	}
	start := time.Now()
	var took []time.Duration
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for range o.Rounds {
		answers, errs := make([]answer, scrapers), make([]error, scrapers)
		var all sync.WaitGroup
		for i := range scrapers {
			all.Go(func() { answers[i], errs[i] = scrape(ctx, c.HTTP(), s.url, false) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return r, err
		}
		for _, a := range answers {
			took = append(took, a.took)
			r.gzip = len(a.body)
		}
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-tick.C:
		}
	}
	after, err := cpuTime(s.PID())
	r.median, r.p99 = quantile(took, 0.5), quantile(took, 0.99)
	r.cpu = time.Duration(float64(after-before) / time.Since(start).Seconds())
	return r, err
}
