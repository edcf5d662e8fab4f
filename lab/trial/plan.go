package trial

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"grayfail/event"
	"grayfail/lab"
)

// Condition is one state of the network or the hosts.
type Condition struct {
	Name string
	// Faults are applied together; none means nothing is done.
	Faults []func(*lab.Cluster) (lab.Injector, error)
	// Concurrency is how many requests run at once; 0 means 1.
	Concurrency int
}

// Plan of a trial. Blocks are shuffled by Seed before the first request.
type Plan struct {
	WarmUp     int // requests without any fault, before the blocks
	Blocks     int
	Repeats    int // requests of each condition in each block
	Conditions []Condition
	Seed       uint64
	Request    lab.RequestOptions
	// InOrder keeps the conditions' order in every block.
	InOrder bool
}

// WarmUpName is the condition of the requests before the first block.
const WarmUpName = "warm-up"

// Result is one request of a trial.
type Result struct {
	Condition string
	Block     int // 0 for the warm-up
	lab.Answer
	// Row is the exporter's row of decode; nil where there is none.
	Row *event.Row
}

// Act is one condition of one block, as it was played.
type Act struct {
	Condition string
	Block     int
	From, To  time.Time
	Evidence  []lab.Evidence // by fault
	Results   []Result
}

// order lists the conditions of every block.
func (p *Plan) order() [][]Condition {
	rnd := rand.New(rand.NewPCG(p.Seed, p.Seed))
	blocks := make([][]Condition, p.Blocks)
	for i := range blocks {
		blocks[i] = append([]Condition(nil), p.Conditions...)
		if !p.InOrder {
			rnd.Shuffle(len(blocks[i]), func(a, b int) { blocks[i][a], blocks[i][b] = blocks[i][b], blocks[i][a] })
		}
	}
	return blocks
}

// Run plays the plan and hands over each act as it ends; acts played before an
// error have been handed over. A fault that did not act is an error: what was
// measured under it is not valid.
func (p *Plan) Run(ctx context.Context, c *lab.Cluster, played func(Act)) error {
	warm := Condition{Name: WarmUpName}
	if p.WarmUp > 0 {
		act, err := p.play(ctx, c, warm, 0, p.WarmUp)
		played(act)
		if err != nil {
			return err
		}
	}
	for i, block := range p.order() {
		for _, cond := range block {
			act, err := p.play(ctx, c, cond, i+1, p.Repeats)
			if err != nil {
				return fmt.Errorf("block %d, %s: %w", i+1, cond.Name, err)
			}
			played(act)
		}
	}
	return nil
}

func (p *Plan) play(ctx context.Context, c *lab.Cluster, cond Condition, block, requests int) (act Act, err error) {
	act = Act{Condition: cond.Name, Block: block, From: time.Now()}
	var faults []lab.Injector
	defer func() {
		for _, in := range faults {
			e, ejected := c.Eject(in)
			act.Evidence = append(act.Evidence, e)
			if err == nil {
				err = ejected
			}
		}
		act.To = time.Now()
	}()
	for _, make := range cond.Faults {
		in, err := make(c)
		if err != nil {
			return act, err
		}
		if err := c.Inject(ctx, in); err != nil {
			return act, err
		}
		faults = append(faults, in)
	}
	act.From = time.Now()
	for _, a := range p.requests(ctx, c, max(1, cond.Concurrency), requests) {
		act.Results = append(act.Results, Result{Condition: cond.Name, Block: block, Answer: a})
	}
	return act, ctx.Err()
}

// requests runs n requests, several at once if told to, and returns them in
// their order of start.
func (p *Plan) requests(ctx context.Context, c *lab.Cluster, concurrency, n int) []lab.Answer {
	answers := make([]lab.Answer, n)
	next := make(chan int)
	var workers sync.WaitGroup
	for range concurrency {
		workers.Go(func() {
			for i := range next {
				answers[i] = c.Request(ctx, p.Request)
			}
		})
	}
	for i := range n {
		if ctx.Err() != nil {
			answers = answers[:i]
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	return answers
}

// Join gives each result the row whose phase lies within it, judged by the
// middle of the phase: the ends are noted by two programs. Requests that
// overlap cannot be told apart by their times.
func Join(results []Result, rows []event.Row) {
	for i := range results {
		r := &results[i]
		for k := range rows {
			if at := middle(rows[k]); at.After(r.Start) && at.Before(r.End) {
				r.Row = &rows[k]
			}
		}
	}
}

func middle(r event.Row) time.Time {
	from := r.StartNS
	if from == 0 {
		from = r.EndNS
	}
	return time.Unix(0, from+(r.EndNS-from)/2)
}

// During picks the rows whose phase lies within an act.
func (a Act) During(rows []event.Row) (out []event.Row) {
	for _, r := range rows {
		if at := middle(r); at.After(a.From) && at.Before(a.To) {
			out = append(out, r)
		}
	}
	return out
}
