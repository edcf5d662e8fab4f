package detector

import (
	"fmt"
	"strings"
	"testing"

	"grayfail/event"
)

// fabricStep is a run of requests of one second each, while counters move.
type fabricStep struct {
	n       int
	rate    float64
	outcome event.Outcome
	// moves in each request: "rxe0/1 rcvd_seq_err sequence_nak 5".
	moves []string
	// legs change before the run: "a rdma rxe0/1", "a fallback".
	legs []string

	cause  event.Cause // of the decode rows; "" for verdicts that are not slow
	leg    string
	detail string // a part of it
}

const (
	nak   = "completer_retry_err retransmission"
	gone  = "retry_exceeded_err retry_exceeded"
	rnr   = "rcvd_rnr_err rnr_received"
	delay = "out_of_sequence out_of_sequence"
)

// TestRDMAWitness: requests at 100 tok/s whose payload no exchange shows.
func TestRDMAWitness(t *testing.T) {
	warm := fabricStep{n: 12, rate: 100, legs: []string{"a rdma rxe0/1", "b rdma mlx/1", "c rdma mlx/2"}}
	for name, steps := range map[string][]fabricStep{
		"one leg retries": {
			warm, {n: 3, rate: 20, moves: []string{"rxe0/1 " + nak + " 9", "rxe0/1 rcvd_seq_err sequence_nak 4"}, cause: event.CauseLoss, leg: "a", detail: "9 completer_retry_err, 4 rcvd_seq_err on port rxe0/1"},
			{n: 1, rate: 90, moves: []string{"rxe0/1 " + nak + " 1"}},
		},
		"port 2 of two":    {warm, {n: 1, rate: 20, moves: []string{"mlx/2 " + delay + " 9"}, cause: event.CauseLoss, leg: "c", detail: "port mlx/2"}},
		"nothing retries":  {warm, {n: 1, rate: 20, cause: event.CauseUnattributed, detail: "no accepted request has shown exchanges"}},
		"no buffer":        {warm, {n: 1, rate: 20, moves: []string{"rxe0/1 " + rnr + " 99"}, cause: event.CauseUnattributed, detail: "no accepted request has shown exchanges"}},
		"two ports":        {warm, {n: 1, rate: 20, moves: []string{"mlx/2 " + delay + " 9", "rxe0/1 " + nak + " 4"}, cause: event.CauseUnattributed, detail: "more than one path"}},
		"another a little": {warm, {n: 1, rate: 20, moves: []string{"mlx/2 " + delay + " 90", "rxe0/1 " + nak + " 4"}, cause: event.CauseLoss, leg: "c", detail: "90 out_of_sequence"}},
		"a shared port": {
			warm, {n: 1, rate: 20, legs: []string{"b rdma mlx/2"}, moves: []string{"mlx/2 " + delay + " 9"}, cause: event.CauseUnattributed, detail: "which legs b, c share"},
			{n: 1, rate: 20, legs: []string{"b rdma mlx/1"}, moves: []string{"mlx/2 " + delay + " 9"}, cause: event.CauseLoss, leg: "c", detail: "port mlx/2"},
		},
		"a port of nobody": {warm, {n: 1, rate: 20, moves: []string{"other/1 " + nak + " 99"}, cause: event.CauseUnattributed, detail: "no accepted request has shown exchanges"}},
		"a leg on TCP":     {warm, {n: 1, rate: 20, legs: []string{"a tcp rxe0/1"}, moves: []string{"rxe0/1 " + nak + " 99"}, cause: event.CauseUnattributed, detail: "no accepted request has shown exchanges"}},
		"usual retries": {
			{n: 12, rate: 100, legs: warm.legs, moves: []string{"rxe0/1 " + nak + " 5"}},
			{n: 1, rate: 20, moves: []string{"rxe0/1 " + nak + " 6"}, cause: event.CauseUnattributed, detail: "no accepted request has shown exchanges"},
			{n: 1, rate: 20, moves: []string{"rxe0/1 " + nak + " 60"}, cause: event.CauseLoss, leg: "a", detail: "60 completer_retry_err"},
		},
		"gave up": {
			warm, {n: 1, outcome: event.OutcomeError, moves: []string{"mlx/1 " + gone + " 1"}, cause: event.CauseDeadPath, leg: "b", detail: "1 retry_exceeded_err on port mlx/1"},
		},
		"an error of another kind": {warm, {n: 1, rate: 100, outcome: event.OutcomeError, moves: []string{"mlx/1 " + nak + " 1"}, cause: event.CauseUnattributed, detail: "it was not the time"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := New(DefaultConfig())
			nowNS := int64(1_800_000_000e9)
			serial := 0
			for i, s := range steps {
				for _, change := range s.legs {
					c := event.LegChange{TimeNS: nowNS}
					place := ""
					if _, err := fmt.Sscan(change, &c.Leg, &c.Transport, &place); err != nil {
						t.Fatal(err)
					}
					c.RDMADevice, c.RDMAPort = portOf(t, place)
					d.Leg(c)
				}
				for range s.n {
					serial++
					fromNS := nowNS
					nowNS += 1e9
					for _, m := range s.moves {
						step := event.RDMAStep{FromNS: fromNS, TimeNS: nowNS}
						place := ""
						if _, err := fmt.Sscan(m, &place, &step.Event, &step.Meaning, &step.Count); err != nil {
							t.Fatal(err)
						}
						step.Device, step.Port = portOf(t, place)
						d.RDMA(step)
						d.RDMA(step) // one that comes twice counts once
					}
					r := event.Request{ID: fmt.Sprint(serial), Source: "main", Model: "m", StartNS: fromNS + 1e6, FirstTokenNS: fromNS + 1e8, EndNS: nowNS - 1e6, GeneratedTokens: 32, DecodeRate: s.rate, Concurrency: 1, Outcome: s.outcome}
					if r.Outcome == "" {
						r.Outcome = event.OutcomeOK
					}
					d.Request(r)
					nowNS += 5e9 // nobody else's retries
					row := d.Advance(nowNS).Rows[0]
					if row.Cause != s.cause || row.Leg != s.leg || !strings.Contains(row.Detail, s.detail) {
						t.Errorf("step %d: %s %s %q (%s), want %s %q (%s)", i, row.Verdict, row.Cause, row.Leg, row.Detail, s.cause, s.leg, s.detail)
					}
					sum := row.LocalMS
					for _, ms := range row.LegsMS {
						sum += ms
					}
					if sum != row.ExcessMS {
						t.Errorf("step %d: legs and local are %g of %g ms", i, sum, row.ExcessMS)
					}
				}
			}
		})
	}
}

func portOf(t *testing.T, place string) (device string, port int) {
	t.Helper()
	device, number, _ := strings.Cut(place, "/")
	if _, err := fmt.Sscan(number, &port); err != nil {
		t.Fatal(err)
	}
	return device, port
}

// Few retries cannot be what took a minute.
func TestTooFewRetries(t *testing.T) {
	d := New(DefaultConfig())
	nowNS := int64(1_800_000_000e9)
	d.Leg(event.LegChange{TimeNS: nowNS, Leg: "a", Transport: event.TransportRDMA, RDMADevice: "rxe0", RDMAPort: 1})
	request := func(seconds int64) event.Row {
		t.Helper()
		nowNS += seconds * 1e9
		d.Request(event.Request{Model: "m", FirstTokenNS: nowNS - seconds*1e9, EndNS: nowNS, GeneratedTokens: 101, DecodeRate: 100 / float64(seconds), Concurrency: 1, Outcome: event.OutcomeOK})
		nowNS += 5e9
		return d.Advance(nowNS).Rows[0]
	}
	for range 12 {
		request(1)
	}
	for _, c := range []struct {
		count uint64
		cause event.Cause
	}{{2, event.CauseUnattributed}, {20, event.CauseLoss}} {
		d.RDMA(event.RDMAStep{FromNS: nowNS + 1e9, TimeNS: nowNS + 2e9, Device: "rxe0", Port: 1, Event: "completer_retry_err", Meaning: event.RDMARetransmission, Count: c.count})
		if row := request(60); row.Verdict != event.VerdictSlow || row.Cause != c.cause {
			t.Errorf("%d retries: %s %s (%s)", c.count, row.Verdict, row.Cause, row.Detail)
		}
	}
}

// What does not fit is counted, and a port that stands still makes room.
func TestFabricIsBounded(t *testing.T) {
	var f fabric
	step := event.RDMAStep{FromNS: 1, TimeNS: 1e9, Port: 1, Event: "e", Meaning: event.RDMATimeout, Count: 1 << 40}
	for i := range maxRDMAPorts + 2 {
		step.Device = fmt.Sprint("d", i)
		f.add(&step)
	}
	if len(f.ports) != maxRDMAPorts || f.overflow != 2 {
		t.Errorf("%d ports, %d did not fit", len(f.ports), f.overflow)
	}
	step.FromNS, step.TimeNS = step.FromNS+int64(portIdle)*2, step.TimeNS+int64(portIdle)*2
	f.add(&step)
	if len(f.ports) != 1 || f.overflow != 2 {
		t.Errorf("later: %d ports, %d did not fit", len(f.ports), f.overflow)
	}
	for i := range 2 * maxPortCounters {
		step.Event = fmt.Sprint("e", i)
		f.add(&step)
	}
	for i := range 2 * int64(maxPortSteps) {
		step.FromNS, step.TimeNS = step.TimeNS, step.TimeNS+1e9
		step.Event = fmt.Sprint("e", i%3)
		f.add(&step)
	}
	p := f.ports[rdmaPort{step.Device, 1}]
	if len(p.counters) != maxPortCounters || len(p.steps) != maxPortSteps {
		t.Errorf("%d counters, %d steps", len(p.counters), len(p.steps))
	}
	old := len(p.steps)
	step.FromNS, step.TimeNS = 1, 2
	f.add(&step)
	if len(p.steps) != old {
		t.Error("one older than all was kept")
	}
	if r := p.during(0, 1<<62); r.worst == 0 || r.gaveUp != 0 {
		t.Errorf("%+v", r)
	}
}
