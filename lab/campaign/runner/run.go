package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"grayfail/lab"
	"grayfail/lab/campaign/folder"
	"grayfail/lab/campaign/report"
	"grayfail/lab/campaign/spec"
)

// Options of a campaign.
type Options struct {
	Spec *spec.Spec
	Text []byte // of the specification
	Dir  string
	Log  io.Writer // progress, a line for each block's condition
}

// runner plays one campaign.
type runner struct {
	Options
	*journal
	client *http.Client
	slots  int // played by this start
	took   time.Duration
	blind  sync.Once
}

// Run plays what has not been played yet. When ctx ends the condition in force
// is cleared, its records are kept as interrupted, and the error is ctx's; the
// same call goes on from there.
func Run(ctx context.Context, o Options) (err error) {
	j, left, err := openJournal(o.Dir, o.Spec, o.Text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	if left != nil {
		fmt.Fprintf(o.Log, "condition %s was left in force by a start that was killed: clearing it\n", left.Name)
		if err := j.tidy(left); err != nil {
			return err
		}
	}
	r := &runner{Options: o, journal: j, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.Spec.Concurrency}}}
	defer r.client.CloseIdleConnections()
	order := o.Spec.Order()
	if open := r.open(order); open < len(order) {
		fmt.Fprintf(o.Log, "going on: %d of %d conditions of blocks are played\n", len(order)-open, len(order))
	}
	if r.open(order) > 0 {
		if err := r.warmUp(ctx); err != nil {
			return err
		}
	}
	for i, slot := range order {
		if r.doneSlot(slot) {
			continue
		}
		if err := r.slot(ctx, slot, r.open(order[i:])); err != nil {
			return fmt.Errorf("block %d, %s: %w", slot.Block+1, slot.Condition, err)
		}
	}
	return r.report()
}

// open counts the slots that are to be played.
func (r *runner) open(order []spec.Slot) (n int) {
	for _, slot := range order {
		if !r.doneSlot(slot) {
			n++
		}
	}
	return n
}

func (r *runner) doneSlot(slot spec.Slot) bool {
	for run := range r.Spec.Repeats {
		if !r.done(slot.FirstRun + run) {
			return false
		}
	}
	return true
}

// warmUp sends requests that are not recorded. One that fails is an error:
// nothing that follows would mean anything.
func (r *runner) warmUp(ctx context.Context) error {
	for i := range r.Spec.Warmup {
		a := send(ctx, r.Spec, r.client)
		if err := ctx.Err(); err != nil {
			return err
		}
		if a.request.Outcome != "ok" {
			return fmt.Errorf("warm-up request %d ended with %s before any condition was made (%s): is the engine there?", i+1, a.request.Outcome, describe(&a))
		}
	}
	return nil
}

func describe(a *answer) string {
	switch {
	case a.request.HTTPStatus != nil:
		return fmt.Sprintf("HTTP status %d", *a.request.HTTPStatus)
	case a.request.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *a.request.ExitCode)
	}
	return "no answer"
}

// slot plays one condition of one block: make it, send, read its counters,
// clear it, record.
func (r *runner) slot(ctx context.Context, slot spec.Slot, open int) (err error) {
	began := time.Now()
	c := r.condition(slot.Condition)
	f := newFault(c)
	if err := r.begin(c); err != nil {
		return err
	}
	// Records wait until the condition is cleared and judged.
	var all []report.Run
	var answers []*answer
	var played error
	if played = f.apply(ctx); played == nil {
		all, answers, played = r.repeats(ctx, f, c, slot)
	}
	clearing, cancel := context.WithTimeout(context.Background(), clearTime)
	defer cancel()
	if err := f.clear(clearing); err != nil {
		return errors.Join(played, fmt.Errorf("the condition cannot be cleared: %w", err))
	}
	if err := r.end(); err != nil {
		return errors.Join(played, err)
	}
	if played == nil {
		played = verdicts(ctx, r.client, r.Spec.Exporter, answers)
	}
	for i := range all {
		all[i].Request = &answers[i].request
	}
	judge(c, all, cmp.Or(played, ctx.Err()))
	if err := r.record(all); err != nil {
		return errors.Join(played, err)
	}
	if played == nil {
		played = ctx.Err()
	}
	if played != nil {
		return played
	}
	r.slots++
	r.took += time.Since(began)
	r.progress(slot, all, open-1)
	return nil
}

// repeats plays the runs of a slot that are not played yet.
func (r *runner) repeats(ctx context.Context, f fault, c *spec.Condition, slot spec.Slot) (all []report.Run, answers []*answer, err error) {
	counted := lab.Namespace(cmp.Or(c.CountNetns, c.Netns))
	for repeat := range r.Spec.Repeats {
		if interrupted := ctx.Err() != nil; interrupted || r.done(slot.FirstRun+repeat) {
			continue // what there is is kept
		}
		before, err := f.count(ctx)
		if err != nil {
			return all, answers, err
		}
		tcpBefore, tcpErr := readTCP(ctx, counted)
		batch := make([]*answer, r.Spec.Concurrency)
		var streams sync.WaitGroup
		for i := range batch {
			streams.Go(func() { a := send(ctx, r.Spec, r.client); batch[i] = &a })
		}
		streams.Wait()
		after, err := f.count(context.WithoutCancel(ctx))
		if err != nil {
			return all, answers, err
		}
		tcpAfter, afterErr := readTCP(context.WithoutCancel(ctx), counted)
		if err := cmp.Or(tcpErr, afterErr); err != nil && ctx.Err() == nil {
			r.blind.Do(func() {
				fmt.Fprintf(r.Log, "retransmits and timeouts of TCP cannot be read, and are in no record: %v\n", err)
			})
		}
		for stream, a := range batch {
			run := report.Run{
				Version: report.RunVersion, SpecHash: r.Spec.Hash, Run: slot.FirstRun + repeat, Block: slot.Block, Position: slot.Position,
				Condition: slot.Condition, Repeat: repeat, Stream: stream, Started: a.start, Ended: a.end, Valid: true,
			}
			if kind := c.Kind(); kind != "" {
				run.Injector = &report.Injector{Kind: kind, CounterBefore: &before.Acted, CounterAfter: &after.Acted, Unit: after.Unit}
			}
			if after.Drops != nil && before.Drops != nil {
				run.Qdisc = drops(before, after)
			}
			if tcpErr == nil && afterErr == nil {
				retransmits, timeouts := tcpAfter.retransmits-tcpBefore.retransmits, tcpAfter.timeouts-tcpBefore.timeouts
				run.TCP = &report.TCP{Retransmits: &retransmits, RTO: &timeouts}
			}
			all, answers = append(all, run), append(answers, a)
		}
	}
	return all, answers, nil
}

func drops(before, after count) *report.Qdisc {
	lost, packets := *after.Drops-*before.Drops, *after.Packets-*before.Packets
	q := &report.Qdisc{Drops: &lost, Packets: &packets}
	if packets > 0 {
		fraction := float64(lost) / float64(packets)
		q.DropFraction = &fraction
	}
	return q
}

// judge says which records count. Whether the condition acted is asked of all
// runs of the slot together: a single request may well lose nothing at 1%.
func judge(c *spec.Condition, all []report.Run, broken error) {
	acted := c.Kind() == ""
	for i := range all {
		if in := all[i].Injector; in != nil && *in.CounterAfter > *in.CounterBefore {
			acted = true
		}
	}
	for i := range all {
		if all[i].Injector != nil {
			all[i].Injector.Acted = acted
		}
		switch {
		case broken != nil:
			all[i].Valid, all[i].InvalidReason = false, interrupted
		case !acted:
			all[i].Valid, all[i].InvalidReason = false, "the condition did not act: its counter did not move"
		}
	}
}

func (r *runner) condition(name string) *spec.Condition {
	for i := range r.Spec.Conditions {
		if r.Spec.Conditions[i].Name == name {
			return &r.Spec.Conditions[i]
		}
	}
	panic("an order of another specification")
}

// progress prints a line: what was measured, and how long the rest will take.
func (r *runner) progress(slot spec.Slot, all []report.Run, open int) {
	var figures []string
	for i := range all {
		q := all[i].Request
		switch {
		case !all[i].Valid:
			figures = append(figures, "invalid")
		case q.Outcome != "ok":
			figures = append(figures, string(q.Outcome))
		case q.Decode != nil:
			figures = append(figures, fmt.Sprintf("%.4g tok/s", *q.Decode))
		default:
			figures = append(figures, fmt.Sprintf("%.3g s", *q.Latency))
		}
	}
	left := (r.took / time.Duration(r.slots) * time.Duration(open)).Round(time.Second)
	fmt.Fprintf(r.Log, "block %d of %d, %s: %s; about %s left\n", slot.Block+1, r.Spec.Blocks, slot.Condition, strings.Join(figures, ", "), left)
}

// report writes report.md.
func (r *runner) report() error {
	res, err := folder.Load(r.Dir)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Dir, folder.Report), res.Markdown(folder.Drawings(r.Dir)...), 0o644)
}
