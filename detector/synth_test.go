package detector_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"grayfail/detector"
	"grayfail/event"
)

// engine makes up the traffic of a pipeline over several workers: one exchange
// a token and leg, one leg after the other, as llama.cpp's RPC does. Its token
// time is known exactly.
type engine struct {
	legs   []string
	random *rand.Rand
	nowNS  int64
	serial int
	// turn and local are what a token takes on each leg and on none.
	turn, local time.Duration
	tokens      int
	prompt      int
	sigma       float64 // of the logarithm of the request's speed
	concurrency float64
	// fault changes an exchange before it happens.
	fault func(leg int, e *event.Exchange)
	model string
}

func newEngine(legs ...string) *engine {
	return &engine{
		legs: legs, random: rand.New(rand.NewPCG(1, 2)), nowNS: 1_800_000_000e9,
		turn: 2 * time.Millisecond, local: time.Millisecond, tokens: 32, prompt: 20, sigma: 0.05, concurrency: 1, model: "m",
	}
}

// request plays one request; prefill of a long prompt is one exchange a leg.
func (g *engine) request(condition string) []event.Record {
	g.serial++
	pace := math.Exp(g.sigma * g.random.NormFloat64())
	r := &event.Request{
		ID: fmt.Sprintf("%s-%d", condition, g.serial), Source: "main", Model: g.model, StartNS: g.nowNS, PromptTokens: g.prompt,
		GeneratedTokens: g.tokens, Outcome: event.OutcomeOK, Condition: condition, Concurrency: g.concurrency,
	}
	var out []event.Record
	step := func(scale float64, requestBytes, replyBytes uint64) {
		for i, name := range g.legs {
			d := time.Duration(float64(g.turn) * pace * scale * (0.97 + 0.06*g.random.Float64()))
			e := &event.Exchange{
				Leg: name, SendNS: g.nowNS, Duration: d, FirstByte: d - 30*time.Microsecond, Ack: 60 * time.Microsecond, Stall: 20 * time.Microsecond,
				RequestBytes: requestBytes, ReplyBytes: replyBytes, RTT: 80 * time.Microsecond, Flow: event.Flow{Socket: uint64(i + 1)},
			}
			if g.fault != nil {
				g.fault(i, e)
			}
			g.nowNS += int64(e.Duration)
			out = append(out, e)
		}
		g.nowNS += int64(float64(g.local) * pace * scale)
	}
	before := g.nowNS
	step(float64(g.prompt)/10, 200_000, 37_000)
	r.FirstTokenNS = g.nowNS
	r.PrefillRate = float64(g.prompt) / (float64(g.nowNS-before) / 1e9)
	before = g.nowNS
	for range g.tokens {
		step(1, 6466, 128_000)
	}
	r.EndNS = g.nowNS
	r.DecodeRate = float64(g.tokens) / (float64(g.nowNS-before) / 1e9)
	g.nowNS += 5e6
	return append(out, r)
}

func (g *engine) requests(n int, condition string) (out []event.Record) {
	for range n {
		out = append(out, g.request(condition)...)
	}
	return out
}

// of picks the rows of a condition and phase.
func of(rows []event.Row, condition string, phase event.Phase) (out []event.Row) {
	for _, row := range rows {
		if row.Condition == condition && row.Phase == phase {
			out = append(out, row)
		}
	}
	return out
}

// all fails unless each row is as wanted, and there are n.
func all(t *testing.T, rows []event.Row, n int, verdict event.Verdict, cause event.Cause, leg string) {
	t.Helper()
	if len(rows) != n {
		t.Errorf("%d rows, want %d", len(rows), n)
	}
	for _, row := range rows {
		if row.Verdict != verdict || row.Cause != cause || row.Leg != leg {
			r := math.NaN()
			if row.R != nil {
				r = *row.R
			}
			t.Errorf("%s: r %.2f %s, %s %q (%s), want %s, %s %q", row.ID, r, row.Verdict, row.Cause, row.Leg, row.Detail, verdict, cause, leg)
		}
	}
}

func late(by time.Duration) func(int, *event.Exchange) {
	return func(leg int, e *event.Exchange) {
		if leg == 1 {
			e.Ack, e.FirstByte, e.Duration, e.RTT = e.Ack+by, e.FirstByte+by, e.Duration+by, e.RTT+by
		}
	}
}

func TestLedgerIsExact(t *testing.T) {
	g := newEngine("a", "b")
	g.sigma = 0
	records := g.requests(15, "ok")
	g.fault = late(10 * time.Millisecond)
	records = append(records, g.requests(5, "bad")...)
	rows := slowRows(t, play(detector.DefaultConfig(), records))
	all(t, of(rows, "bad", event.PhaseDecode), 5, event.VerdictSlow, event.CauseDelay, "b")
	for _, row := range of(rows, "bad", event.PhaseDecode) {
		if math.Abs(row.LegsMS["b"]-320) > 10 || math.Abs(row.LegsMS["a"]) > 5 || math.Abs(row.LocalMS) > 5 {
			t.Errorf("%s: legs %v, local %.1f; want 32 x 10 ms on b", row.ID, row.LegsMS, row.LocalMS)
		}
	}
}

// Prefill has its own rate, baseline, verdict and ledger.
func TestPrefillLedger(t *testing.T) {
	g := newEngine("a", "b")
	g.prompt = 640
	records := g.requests(12, "ok")
	g.fault = func(leg int, e *event.Exchange) {
		if leg == 0 && e.RequestBytes > 100_000 { // lost while the prompt is sent
			e.Duration, e.FirstByte, e.Ack, e.Retransmits = 5*e.Duration, 5*e.FirstByte, 4*e.Duration, 12
		}
	}
	records = append(records, g.requests(4, "bad")...)
	rows := play(detector.DefaultConfig(), records)
	slowRows(t, rows)
	all(t, of(rows, "bad", event.PhasePrefill), 4, event.VerdictSlow, event.CauseLoss, "a")
	all(t, of(rows, "bad", event.PhaseDecode), 4, event.VerdictOK, event.CauseNone, "")
}

func TestCauses(t *testing.T) {
	hung := func(leg int, e *event.Exchange) {
		if leg == 1 {
			e.Duration, e.FirstByte, e.Ack, e.Open, e.ReplyBytes = 40*time.Second, 0, 0, true, 0
		}
	}
	both := func(f func(int, *event.Exchange)) func(int, *event.Exchange) {
		return func(_ int, e *event.Exchange) { f(1, e) }
	}
	lossy := func(leg int, e *event.Exchange) {
		if leg == 1 && e.SendNS%7 == 0 {
			e.Duration, e.Stall, e.OutOfOrder = e.Duration+205*time.Millisecond, 205*time.Millisecond, 2
		}
	}
	times := func(f float64) func(*event.Exchange) {
		return func(e *event.Exchange) {
			e.Duration, e.FirstByte = time.Duration(f*float64(e.Duration)), time.Duration(f*float64(e.FirstByte))
		}
	}
	for _, c := range []struct {
		name  string
		fault func(int, *event.Exchange)
		setup func(*engine)
		// more records of the fault's time
		more    func(g *engine, startNS int64) []event.Record
		outcome event.Outcome
		refused int // connections of b that failed
		cause   event.Cause
		leg     string
	}{
		{name: "a slow path", fault: late(12 * time.Millisecond), cause: event.CauseDelay, leg: "b"},
		{name: "a very slow path is no timeout", fault: late(200 * time.Millisecond), cause: event.CauseDelay, leg: "b"},
		{name: "all paths slow", fault: both(late(12 * time.Millisecond)), cause: event.CauseCommon},
		{name: "a lossy path", fault: lossy, cause: event.CauseLoss, leg: "b"},
		{name: "all paths lossy", fault: func(_ int, e *event.Exchange) {
			if e.SendNS%2 == 0 {
				e.Duration, e.Stall, e.OutOfOrder = e.Duration+205*time.Millisecond, 205*time.Millisecond, 2
			}
		}, cause: event.CauseCommon},
		{name: "a host that is slow all the time", fault: func(leg int, e *event.Exchange) {
			if leg == 1 {
				times(6)(e)
			}
		}, cause: event.CausePeerHost, leg: "b"},
		{name: "everything slow by a like factor", fault: func(_ int, e *event.Exchange) { times(3)(e) },
			setup: func(g *engine) { g.local *= 3 }, cause: event.CauseCommon},
		{name: "unequal legs slow by a like factor", fault: func(leg int, e *event.Exchange) { times(3)(e) },
			setup: func(g *engine) { g.local *= 4 }, cause: event.CauseCommon},
		{name: "this host slow", setup: func(g *engine) { g.local *= 12 }, cause: event.CauseLocal},
		{name: "replies come evenly slow", fault: func(leg int, e *event.Exchange) {
			if leg == 1 {
				e.Duration, e.Stall = e.Duration+20*time.Millisecond, time.Millisecond
			}
		}, cause: event.CauseDelay, leg: "b"},
		{name: "each small reply waits for its turn at a limit", fault: func(leg int, e *event.Exchange) {
			if leg == 1 {
				e.Duration, e.Stall = e.Duration+20*time.Millisecond, 20*time.Millisecond
			}
		}, cause: event.CauseDelay, leg: "b"},
		{name: "a hung leg", fault: hung, setup: func(g *engine) { g.tokens = 1 }, outcome: event.OutcomeTimeout, cause: event.CauseDeadPath, leg: "b"},
		{name: "connections refused", outcome: event.OutcomeError, refused: 1, cause: event.CauseDeadPath, leg: "b"},
		{name: "connections refused again and again, and still an answer", fault: func(leg int, e *event.Exchange) {
			if leg == 1 {
				times(8)(e)
			}
		}, refused: 2, cause: event.CauseDeadPath, leg: "b"},
		{name: "a slow path, and one connection that failed", fault: late(12 * time.Millisecond), refused: 1, cause: event.CauseDelay, leg: "b"},
		{name: "a lossy path, and one connection that failed", fault: lossy, refused: 1, cause: event.CauseLoss, leg: "b"},
		{name: "a lossy path, and connections that failed of it", fault: lossy, refused: 3, cause: event.CauseLoss, leg: "b"},
		{name: "a queue drops, nothing else is seen", fault: func(leg int, e *event.Exchange) {
			if leg == 1 && e.SendNS%5 == 0 {
				e.Duration, e.FirstByte = e.Duration+215*time.Millisecond, e.FirstByte+215*time.Millisecond
			}
		}, more: func(_ *engine, startNS int64) []event.Record {
			var out []event.Record
			for i := range int64(60) {
				out = append(out, &event.Qdisc{TimeNS: startNS + i*1e9, Device: "veth1", Kind: "tbf", Handle: "1:", Packets: uint64(1000 * i), Drops: uint64(9 * i)})
			}
			return out
		}, cause: event.CauseLoss, leg: "b"},
		{name: "the leg left RDMA", fault: func(leg int, e *event.Exchange) {
			if leg == 1 {
				times(8)(e)
			}
		}, more: func(_ *engine, startNS int64) []event.Record {
			return []event.Record{&event.LegChange{TimeNS: startNS, Leg: "b", Transport: event.TransportFallback, Reason: "memlock"}}
		}, cause: event.CauseRDMAFallback, leg: "b"},
		{name: "no exchanges at all", fault: func(_ int, e *event.Exchange) { e.Leg = "" }, setup: func(g *engine) { g.local *= 12 }, cause: event.CauseUnattributed},
		{name: "an error without any trace", outcome: event.OutcomeError, cause: event.CauseUnattributed},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newEngine("a", "b")
			d := detector.New(detector.DefaultConfig())
			d.Leg(event.LegChange{TimeNS: g.nowNS, Leg: "b", Transport: event.TransportRDMA, Device: "veth1"})
			var rows []event.Row
			feed := func(records []event.Record) {
				slices.SortStableFunc(records, func(a, b event.Record) int { return int(min(1, max(-1, knownAt(a)-knownAt(b)))) })
				for _, rec := range records {
					rows = append(rows, d.Advance(knownAt(rec)).Rows...)
					give(d, rec)
				}
			}
			feed(g.requests(12, "ok"))
			g.nowNS += 10e9
			start := g.nowNS
			if g.fault = c.fault; c.setup != nil {
				c.setup(g)
			}
			bad := g.requests(3, "bad")
			for _, rec := range bad {
				if r, ok := rec.(*event.Request); ok && c.outcome != "" {
					r.Outcome = c.outcome
				}
			}
			for range c.refused {
				d.Connection(event.Connection{Leg: "b", StartNS: start, EndNS: start})
			}
			if c.more != nil {
				bad = append(c.more(g, start), bad...)
			}
			feed(bad)
			rows = append(rows, d.Flush().Rows...)
			slowRows(t, rows)
			all(t, of(rows, "bad", event.PhaseDecode), 3, event.VerdictSlow, c.cause, c.leg)
		})
	}
}

// A ramp 1 -> 8 -> 1 without fault flags nobody: unknown until the strata are
// warm. The same ramp with loss on one leg is flagged and named.
func TestConcurrencyRamp(t *testing.T) {
	g := newEngine("a", "b")
	var records []event.Record
	level := func(n int, concurrency float64, condition string) {
		g.concurrency = concurrency
		slower := 0.6 + 0.4*concurrency // 2 at once run at 0.71, 8 at 0.26
		g.turn, g.local = time.Duration(slower*2e6), time.Duration(slower*1e6)
		records = append(records, g.requests(n, condition)...)
	}
	for _, c := range []float64{1, 2, 4, 8, 4, 2, 1} {
		level(12, c, "warm")
	}
	for _, c := range []float64{1, 2, 4, 8, 4, 2, 1} {
		level(12, c, "again")
	}
	g.fault = func(leg int, e *event.Exchange) {
		if leg == 0 && e.SendNS%11 == 0 {
			e.Duration, e.Stall, e.OutOfOrder = e.Duration+230*time.Millisecond, 230*time.Millisecond, 1
		}
	}
	for _, c := range []float64{1, 2, 4, 8} {
		level(6, c, "lossy")
	}
	rows := play(detector.DefaultConfig(), records)
	slowRows(t, rows)
	unknown := 0
	for _, row := range of(rows, "warm", event.PhaseDecode) {
		if row.Verdict == event.VerdictSlow {
			t.Errorf("%s: slow without a fault", row.ID)
		}
		if row.Verdict == event.VerdictUnknown {
			unknown++
		}
	}
	if unknown != 40 {
		t.Errorf("%d unknown while warming, want 10 in each of 4 strata", unknown)
	}
	all(t, of(rows, "again", event.PhaseDecode), 84, event.VerdictOK, event.CauseNone, "")
	named := 0
	for _, row := range of(rows, "lossy", event.PhaseDecode) {
		if row.Verdict == event.VerdictSlow {
			named++
			if row.Cause != event.CauseLoss || row.Leg != "a" {
				t.Errorf("%s: %s %q (%s)", row.ID, row.Cause, row.Leg, row.Detail)
			}
		}
	}
	if named < 12 {
		t.Errorf("%d of 24 named under loss", named)
	}
}

// An engine with a single worker has no second leg to compare with.
func TestOneLeg(t *testing.T) {
	g := newEngine("only")
	records := g.requests(12, "ok")
	g.fault = func(_ int, e *event.Exchange) { late(15*time.Millisecond)(1, e) }
	records = append(records, g.requests(4, "bad")...)
	rows := play(detector.DefaultConfig(), records)
	slowRows(t, rows)
	all(t, of(rows, "bad", event.PhaseDecode), 4, event.VerdictSlow, event.CauseDelay, "only")
}

// Five legs, two of them off RDMA at once: the first is named, and exactly
// because both left RDMA, not as a common cause.
func TestTwoOfFiveLegsFallBack(t *testing.T) {
	g := newEngine("a", "b", "c", "d", "e")
	d := detector.New(detector.DefaultConfig())
	for _, name := range g.legs {
		d.Leg(event.LegChange{TimeNS: g.nowNS, Leg: name, Transport: event.TransportRDMA})
	}
	var rows []event.Row
	feed := func(records []event.Record) {
		for _, rec := range records {
			rows = append(rows, d.Advance(knownAt(rec)).Rows...)
			give(d, rec)
		}
	}
	feed(g.requests(12, "ok"))
	for _, name := range []string{"b", "d"} {
		d.Leg(event.LegChange{TimeNS: g.nowNS, Leg: name, Transport: event.TransportFallback, Reason: "port_not_probed"})
	}
	g.fault = func(leg int, e *event.Exchange) {
		if leg == 1 || leg == 3 {
			e.Duration, e.FirstByte = 8*e.Duration, 8*e.FirstByte
		}
	}
	feed(g.requests(4, "bad"))
	rows = append(rows, d.Flush().Rows...)
	slowRows(t, rows)
	for _, row := range of(rows, "bad", event.PhaseDecode) {
		if row.Cause != event.CauseRDMAFallback || (row.Leg != "b" && row.Leg != "d") {
			t.Errorf("%s: %s %q (%s)", row.ID, row.Cause, row.Leg, row.Detail)
		}
	}
}

// A request much longer than what is kept one by one is explained from sums.
func TestLongRequest(t *testing.T) {
	g := newEngine("a", "b")
	records := g.requests(12, "ok")
	g.tokens = 4000
	records = append(records, g.requests(10, "long ok")...) // 20 s each
	g.fault = func(leg int, e *event.Exchange) {
		if leg == 1 && e.SendNS%5 == 0 {
			e.Duration, e.Stall, e.OutOfOrder = e.Duration+240*time.Millisecond, 240*time.Millisecond, 1
		}
	}
	records = append(records, g.requests(1, "long bad")...)
	rows := play(detector.DefaultConfig(), records)
	slowRows(t, rows)
	bad := of(rows, "long bad", event.PhaseDecode)
	all(t, bad, 1, event.VerdictSlow, event.CauseLoss, "b")
	if len(bad) == 1 && (bad[0].ExcessMS < 60_000 || bad[0].LegsMS["b"] < 0.98*bad[0].ExcessMS) {
		t.Errorf("excess %.0f ms, legs %v: want a minute and more, all on b", bad[0].ExcessMS, bad[0].LegsMS)
	}
}
