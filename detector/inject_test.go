package detector_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"

	"grayfail/detector"
	"grayfail/event"
)

// added is time that a fault puts into a recording at one moment: everything
// after it comes later.
type added struct {
	atNS int64
	d    time.Duration
}

// inject lets a fault change the exchanges of a recording from its request
// number first on, and moves everything that follows. The fault gets each
// exchange and returns the time that passes on no leg after it.
func inject(in []event.Record, first int, fault func(*event.Exchange) (local time.Duration)) []event.Record {
	var requests []*event.Request
	var exchanges []*event.Exchange
	for _, rec := range copyOf(in) {
		switch x := rec.(type) {
		case *event.Request:
			requests = append(requests, x)
		case *event.Exchange:
			exchanges = append(exchanges, x)
		}
	}
	slices.SortFunc(requests, func(a, b *event.Request) int { return cmp.Compare(a.StartNS, b.StartNS) })
	slices.SortFunc(exchanges, func(a, b *event.Exchange) int { return cmp.Compare(a.SendNS, b.SendNS) })
	from := requests[first].StartNS

	var moves []added
	for _, e := range exchanges {
		if e.SendNS < from {
			continue
		}
		end, before := e.SendNS+int64(e.Duration), e.Duration
		local := fault(e)
		moves = append(moves, added{end, e.Duration - before + local})
	}
	// All that was added before a moment of the old time.
	sums := make([]int64, len(moves)+1)
	for i, m := range moves {
		sums[i+1] = sums[i] + int64(m.d)
	}
	moved := func(t int64) int64 {
		return t + sums[sort.Search(len(moves), func(i int) bool { return moves[i].atNS > t })]
	}
	var out []event.Record
	for _, e := range exchanges {
		e.SendNS = moved(e.SendNS)
		out = append(out, e)
	}
	for i, r := range requests {
		r.StartNS, r.FirstTokenNS, r.EndNS = moved(r.StartNS), moved(r.FirstTokenNS), moved(r.EndNS)
		r.DecodeRate = float64(r.GeneratedTokens) / (float64(r.EndNS-r.FirstTokenNS) / 1e9)
		r.Condition = "before"
		if i >= first {
			r.Condition = "fault"
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b event.Record) int { return cmp.Compare(knownAt(a), knownAt(b)) })
	return out
}

// TestInjectedFaults puts faults of known size into a recording of the real
// engine in which nothing was done, so that its own noise stays: either
// worker, both directions, several strengths.
func TestInjectedFaults(t *testing.T) {
	delay := func(d time.Duration) func(*rand.Rand) func(*event.Exchange) {
		return func(*rand.Rand) func(*event.Exchange) {
			rtt := 80 * time.Microsecond
			return func(e *event.Exchange) {
				e.Duration, e.FirstByte, e.Ack = e.Duration+d, e.FirstByte+d, e.Ack+d
				rtt += (e.Ack - rtt) / 8
				e.RTT = rtt
			}
		}
	}
	// What the worker may not use of 100 ms it must wait for, once it used up
	// its share.
	quota := func(percent float64) func(*rand.Rand) func(*event.Exchange) {
		return func(r *rand.Rand) func(*event.Exchange) {
			share := time.Duration(percent * float64(time.Millisecond))
			used := time.Duration(r.Int64N(int64(share)))
			return func(e *event.Exchange) {
				for used += e.FirstByte; used > share; used -= share {
					stall := 100*time.Millisecond - share
					if r.IntN(3) == 0 {
						e.Stall = max(e.Stall, stall)
					} else {
						e.FirstByte += stall
					}
					e.Duration += stall
				}
			}
		}
	}
	// Packets of 64 kB at most; a lost one is repaired by a fast retransmit
	// when others follow it, else by a timeout.
	replyLoss := func(p float64) func(*rand.Rand) func(*event.Exchange) {
		return func(r *rand.Rand) func(*event.Exchange) {
			return func(e *event.Exchange) {
				packets := 2 + int(e.ReplyBytes>>14)
				for i := range packets {
					if r.Float64() >= p {
						continue
					}
					stall := time.Duration(204e6 + r.Int64N(12e6))
					switch {
					case i == 0 && packets == 2:
						stall = time.Duration(2e6)
						e.OutOfOrder++
					case r.IntN(5) > 0: // the timeout
						if r.IntN(2) == 0 {
							e.OutOfOrder += 2
						}
					default:
						stall = time.Duration(1e6)
						e.OutOfOrder += 3
					}
					e.Stall, e.Duration = max(e.Stall, stall), e.Duration+stall
				}
			}
		}
	}
	requestLoss := func(p float64) func(*rand.Rand) func(*event.Exchange) {
		return func(r *rand.Rand) func(*event.Exchange) {
			return func(e *event.Exchange) {
				packets := 1 + int(e.RequestBytes>>14)
				for range packets {
					if r.Float64() < p {
						wait := time.Duration(9e6 + r.Int64N(8e6)) // a tail probe
						if r.IntN(3) == 0 {
							wait = time.Duration(205e6 + r.Int64N(10e6))
						}
						e.Retransmits++
						e.Duration, e.FirstByte, e.Ack = e.Duration+wait, e.FirstByte+wait, e.Ack+wait
					}
				}
			}
		}
	}
	rate := func(bitsPerSecond float64) func(*rand.Rand) func(*event.Exchange) {
		return func(*rand.Rand) func(*event.Exchange) {
			return func(e *event.Exchange) {
				d := time.Duration(float64(e.ReplyBytes) * 8 / bitsPerSecond * 1e9)
				e.Duration, e.Stall = e.Duration+d, max(e.Stall, d/20)
			}
		}
	}
	pushed := func(bitsPerSecond float64) func(*rand.Rand) func(*event.Exchange) {
		return func(*rand.Rand) func(*event.Exchange) {
			return func(e *event.Exchange) {
				d := time.Duration(float64(e.RequestBytes) * 8 / bitsPerSecond * 1e9)
				e.Duration, e.FirstByte, e.Ack, e.RTT = e.Duration+d, e.FirstByte+d, e.Ack+d, e.RTT+d/2
			}
		}
	}
	const first = 30
	noise := parse(t, "noise")
	for _, c := range []struct {
		name  string
		fault func(*rand.Rand) func(*event.Exchange)
		cause event.Cause
		named float64 // least part of the slow ones
		slow  int     // at least, of 70
	}{
		{"10 ms", delay(10 * time.Millisecond), event.CauseDelay, 1, 70},
		{"50 ms", delay(50 * time.Millisecond), event.CauseDelay, 1, 70},
		{"200 ms", delay(200 * time.Millisecond), event.CauseDelay, 1, 70},
		{"quota 5", quota(5), event.CausePeerHost, 0.9, 70},
		{"quota 10", quota(10), event.CausePeerHost, 0.9, 70},
		{"quota 15", quota(15), event.CausePeerHost, 0.9, 40},
		{"5% of replies lost", replyLoss(0.05), event.CauseLoss, 0.95, 30},
		{"10% of replies lost", replyLoss(0.10), event.CauseLoss, 0.95, 60},
		{"5% of requests lost", requestLoss(0.05), event.CauseLoss, 0.95, 30},
		{"replies at 10 Mbit/s", rate(10e6), event.CauseDelay, 1, 20},
		{"replies at 5 Mbit/s", rate(5e6), event.CauseDelay, 1, 70},
		{"requests at 50 Mbit/s", pushed(50e6), event.CauseDelay, 1, 50},
		{"requests at 10 Mbit/s", pushed(10e6), event.CauseDelay, 1, 70},
	} {
		for _, leg := range []string{"rpc-a", "rpc-b"} {
			t.Run(c.name+" "+leg, func(t *testing.T) {
				change := c.fault(rand.New(rand.NewPCG(5, uint64(len(leg)))))
				records := inject(noise, first, func(e *event.Exchange) time.Duration {
					if e.Leg == leg {
						change(e)
					}
					return 0
				})
				slow, named := 0, 0
				for _, row := range slowRows(t, play(detector.DefaultConfig(), records)) {
					if row.Condition != "fault" {
						t.Errorf("%s is slow before the fault", row.ID)
						continue
					}
					slow++
					if row.Leg == "" && row.Cause != event.CauseLocal {
						continue
					}
					named++
					if row.Leg != leg || row.Cause != c.cause {
						t.Errorf("%s: %s %q (%s), want %s %q", row.ID, row.Cause, row.Leg, row.Detail, c.cause, leg)
					}
				}
				if slow < c.slow || float64(named) < c.named*float64(slow) {
					t.Errorf("%d slow, %d of them named; want %d slow at least, %.0f%% named", slow, named, c.slow, c.named*100)
				}
			})
		}
	}
}

// Load on this host and a slow coordinator never name a path.
func TestInjectedLoad(t *testing.T) {
	noise := parse(t, "noise")
	for _, factor := range []float64{2.5, 4, 8} {
		random := rand.New(rand.NewPCG(9, 9))
		records := inject(noise, 30, func(e *event.Exchange) time.Duration {
			scale := func(d time.Duration) time.Duration {
				return time.Duration(float64(d) * (1 + (factor-1)*2*random.Float64()))
			}
			work := scale(e.FirstByte)
			e.Duration, e.FirstByte = e.Duration+work-e.FirstByte, work
			return scale(400 * time.Microsecond)
		})
		slow := 0
		for _, row := range slowRows(t, play(detector.DefaultConfig(), records)) {
			if row.Condition == "fault" {
				slow++
			}
			if row.Leg != "" {
				t.Errorf("load x%g, %s: %s %q (%s)", factor, row.ID, row.Cause, row.Leg, row.Detail)
			}
		}
		if slow < 40 {
			t.Errorf("load x%g: %d slow only", factor, slow)
		}
	}
	random := rand.New(rand.NewPCG(9, 10))
	records := inject(noise, 30, func(*event.Exchange) time.Duration {
		if random.IntN(12) == 0 {
			return 60 * time.Millisecond
		}
		return 0
	})
	rows := slowRows(t, play(detector.DefaultConfig(), records))
	all(t, rows, 70, event.VerdictSlow, event.CauseLocal, "")
}
