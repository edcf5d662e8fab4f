package replay

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"grayfail/detector"
	"grayfail/event"
)

// Result is the object that "replay --json" prints.
type Result struct {
	File        string              `json:"file"`
	Requests    []event.Row         `json:"requests"`
	Episodes    []event.Episode     `json:"episodes"`
	Table       []Condition         `json:"table"`
	Correlation []event.Correlation `json:"correlation"`
	BadLines    int                 `json:"bad_lines"`

	// Bad are the first maxBad bad lines, in the order of the input.
	Bad []BadLine `json:"-"`
	// Records read.
	Records int `json:"-"`
}

// maxBad bounds the bad lines that are named; all are counted.
const maxBad = 1000

// ErrNothing is returned when no input had a single record.
var ErrNothing = errors.New("nothing readable")

// ErrOnce is returned for an input that is empty at the second reading.
var ErrOnce = errors.New("cannot be read twice: give a regular file")

// Run feeds the inputs to one detector, several of them in the order of their
// times. An input that cannot be read is a bad line 0 of it, and the others are
// read. The error is for no record in any of them; the result is then what was
// found anyway.
func Run(cfg detector.Config, inputs ...Input) (Result, error) {
	names := make([]string, len(inputs))
	for i := range inputs {
		names[i] = inputs[i].Name
	}
	res := Result{
		File: strings.Join(names, ","), Requests: []event.Row{}, Episodes: []event.Episode{},
		Table: []Condition{}, Correlation: []event.Correlation{},
	}
	cfg.Verbose = true
	run := run{det: detector.New(cfg), flights: flights{}, res: &res, table: newTable()}
	var readable []Input
	for _, input := range inputs {
		if some, err := collect(input, run.flights); err != nil {
			run.fail(input, err)
		} else if some {
			readable = append(readable, input)
		}
	}
	run.flights.settle()
	run.feed(readable)
	switch {
	case res.Records > 0:
		// First, so that they are never among those that are too many.
		res.Bad = append(run.failed, res.Bad...)
		res.BadLines += len(run.failed)
	case len(run.failed) > 0:
		errs := make([]error, len(run.failed))
		for i, bad := range run.failed {
			errs[i] = bad
		}
		return res, errors.Join(errs...)
	default:
		return res, fmt.Errorf("%s: %w", res.File, ErrNothing)
	}
	run.take(run.det.Flush())
	run.finish()
	return res, nil
}

// collect is the first pass: requests only. some says whether there was a byte.
func collect(input Input, into flights) (some bool, err error) {
	opened, err := open(input)
	if err != nil {
		return false, err
	}
	s := &reader{scanner: opened}
	defer s.close()
	s.skip = func(line []byte) bool {
		return strings.Contains(string(line[:min(len(line), 64)]), `"type":"exchange"`)
	}
	for {
		rec, err := s.next()
		if errors.Is(err, io.EOF) {
			return s.some, nil
		}
		if r, ok := rec.(*event.Request); ok && err == nil && r.Concurrency == 0 {
			into.add(r)
		}
	}
}

// run is the second pass.
type run struct {
	det     *detector.Detector
	flights flights
	res     *Result
	table   *table
	lastNS  int64
	failed  []BadLine // inputs
}

func (r *run) fail(input Input, err error) {
	r.failed = append(r.failed, BadLine{input.Name, 0, err})
}

// head is the next record of one input.
type head struct {
	reader
	rec event.Record
	at  int64
}

// feed merges the inputs by the time at which each record was known. Within
// one input the order of lines holds.
func (r *run) feed(inputs []Input) {
	var heads []*head
	defer func() {
		for _, h := range heads {
			h.close()
		}
	}()
	for _, input := range inputs {
		s, err := open(input)
		if err != nil {
			r.fail(input, err)
			continue
		}
		h := &head{reader: reader{scanner: s}}
		heads = append(heads, h)
		if r.fill(h); !h.some {
			r.fail(input, ErrOnce)
		}
	}
	for {
		var next *head
		for _, h := range heads {
			if h.rec != nil && (next == nil || h.at < next.at) {
				next = h
			}
		}
		if next == nil {
			return
		}
		r.lastNS = max(r.lastNS, next.at)
		r.take(r.det.Advance(r.lastNS))
		r.give(next.rec)
		r.fill(next)
	}
}

// fill reads the next good record of an input.
func (r *run) fill(h *head) {
	h.rec = nil
	for {
		rec, err := h.next()
		if errors.Is(err, io.EOF) {
			return
		}
		var bad BadLine
		if errors.As(err, &bad) {
			r.res.BadLines++
			if len(r.res.Bad) < maxBad {
				r.res.Bad = append(r.res.Bad, bad)
			}
			continue
		}
		r.res.Records++
		h.rec, h.at = rec, max(h.at, knownAt(rec))
		return
	}
}

func (r *run) give(rec event.Record) {
	switch x := rec.(type) {
	case *event.Request:
		if x.Concurrency == 0 {
			x.Concurrency = r.flights.concurrency(x)
		}
		r.det.Request(*x)
	case *event.Exchange:
		r.det.Exchange(*x)
	case *event.Retransmit:
		r.det.Retransmit(*x)
	case *event.Qdisc:
		r.det.Qdisc(*x)
	case *event.LegChange:
		r.det.Leg(*x)
	case *event.RDMAStep:
		r.det.RDMA(*x)
	case *event.Connection:
		r.det.Connection(*x)
	}
}

// take collects what the detector said.
func (r *run) take(out detector.Output) {
	for i := range out.Rows {
		if out.Rows[i].LegsMS == nil { // whoever reads the result may write into it
			out.Rows[i].LegsMS = event.LegTimes{}
		}
	}
	r.res.Requests = append(r.res.Requests, out.Rows...)
	for i := range out.Requests {
		r.table.request(&out.Requests[i])
	}
	for i := range out.Rows {
		r.table.row(&out.Rows[i])
	}
	for i := range out.Scores {
		r.table.score(&out.Scores[i])
	}
}

// finish closes the books: an episode that is open when the recording ends is
// reported with the end of the last request of its model.
func (r *run) finish() {
	for _, e := range r.det.Episodes() {
		if e.EndNS == 0 {
			e.EndNS = r.table.lastEnd(e.Source, e.Model)
		}
		r.res.Episodes = append(r.res.Episodes, e)
	}
	r.res.Table = r.table.conditions()
	r.res.Correlation = r.table.correlations(r.det.Config())
}
