package scenario

import (
	"math/rand/v2"
	"time"

	"grayfail/event"
)

// Kinds of scenarios.
const (
	KindFault = "fault"
	KindHost  = "host"
	KindLoad  = "load"
	KindMix   = "mix"
	KindCalm  = "calm"
)

// Scenarios that a report speaks of by name.
const (
	LongFault = "600 requests at 0.4"
	Ramp      = "concurrency ramp"
	LossyRamp = "concurrency ramp with 5% loss on one leg"
	DecayPath = "decay of a path to 0.35 over 2,000"
	DecayHost = "decay of the host to 0.35 over 2,000"
)

// nobody are the answers that blame no path.
var nobody = []Answer{{Cause: event.CauseCommon}, {Cause: event.CauseLocal}}

// phase sets the condition and the fault and completes n requests.
func (g *Engine) phase(n int, condition string, f *Fault) {
	g.Drain()
	g.Condition, g.Fault = condition, f
	g.Run(n)
	g.Drain()
	g.Fault = nil
}

// around plays calm requests, n under a fault, and calm ones again.
func (g *Engine) around(f *Fault, n int) {
	g.phase(40, "before", nil)
	g.phase(n, "fault", f)
	g.phase(20, "after", nil)
}

func (g *Engine) victim() int { return g.Random.IntN(len(g.Legs)) }

// short prompts hold up nobody: 8 to 100 tokens.
func short(r *rand.Rand) (prompt, output int) { return spread(r, 8, 100), spread(r, 12, 96) }

// path is a fault of one leg with one right answer.
func path(cause event.Cause, n int, make func(g *Engine, leg int) *Fault) func(*Engine) []Answer {
	return func(g *Engine) []Answer {
		leg := g.victim()
		g.around(make(g, leg), n)
		return []Answer{{cause, g.Legs[leg]}}
	}
}

func fixed(cause event.Cause, n int, make func(legs ...int) *Fault) func(*Engine) []Answer {
	return path(cause, n, func(_ *Engine, leg int) *Fault { return make(leg) })
}

func delayed(d time.Duration) func(*Engine) []Answer {
	return fixed(event.CauseDelay, 40, func(legs ...int) *Fault { return delay(d, legs...) })
}

// ramp goes through the concurrencies, n requests for each client.
func (g *Engine) ramp(n int, condition string, f *Fault) {
	g.Lengths = short
	g.Condition, g.Fault = condition, f
	for _, c := range []int{1, 2, 4, 8, 4, 2, 1} {
		g.Clients = c
		g.Run(n + 4*c)
	}
	g.Drain()
	g.Fault = nil
}

// List is every scenario.
func List() []Scenario {
	return []Scenario{
		{Name: "nothing done", Kind: KindCalm, Play: func(g *Engine) []Answer { g.phase(150, "before", nil); return nil }},
		{Name: "5% loss of replies", Kind: KindFault, Play: fixed(event.CauseLoss, 40, func(l ...int) *Fault { return replyLoss(0.05, l...) })},
		{Name: "1% loss of replies", Kind: KindFault, Play: fixed(event.CauseLoss, 60, func(l ...int) *Fault { return replyLoss(0.01, l...) })},
		{Name: "5% loss of requests", Kind: KindFault, Play: fixed(event.CauseLoss, 40, func(l ...int) *Fault { return requestLoss(0.05, l...) })},
		{Name: "loss in both directions", Kind: KindFault, Play: fixed(event.CauseLoss, 40, func(l ...int) *Fault {
			return both(replyLoss(0.03, l...), requestLoss(0.03, l...))
		})},
		{Name: "bursty loss", Kind: KindFault, Play: fixed(event.CauseLoss, 40, burstLoss)},
		{Name: "10 ms delay", Kind: KindFault, Play: delayed(10 * time.Millisecond)},
		{Name: "50 ms delay", Kind: KindFault, Play: delayed(50 * time.Millisecond)},
		{Name: "200 ms delay", Kind: KindFault, Play: delayed(200 * time.Millisecond)},
		{Name: "replies at 10 Mbit/s", Kind: KindFault, Play: func(g *Engine) []Answer { // the last leg's are large
			leg := len(g.Legs) - 1
			g.around(slowReplies(10e6, leg), 40)
			return []Answer{{event.CauseDelay, g.Legs[leg]}}
		}},
		{Name: "requests at a tenth", Kind: KindFault, Play: path(event.CauseDelay, 40, func(g *Engine, leg int) *Fault {
			kinds := g.profile.inner
			if leg == len(g.Legs)-1 {
				kinds = g.profile.last
			}
			sum := 0.0
			for _, k := range kinds {
				sum += float64(k.request)
			}
			d := g.toRate(0.35, leg) * time.Duration(len(kinds))
			return slowRequests(sum*8/d.Seconds(), leg)
		})},
		{Name: "segments overtake each other", Kind: KindCalm, Play: path(event.CauseLoss, 40, func(_ *Engine, leg int) *Fault {
			return reorder(0.2, 500*time.Microsecond, leg)
		})},
		{Name: "segments come twice", Kind: KindCalm, Play: path(event.CauseLoss, 40, func(_ *Engine, leg int) *Fault { return duplicate(0.2, leg) })},
		{Name: "peer at 15% CPU", Kind: KindFault, Play: fixed(event.CausePeerHost, 40, func(l ...int) *Fault { return peerQuota(15, l...) })},
		{Name: "peer at 5% CPU", Kind: KindFault, Play: fixed(event.CausePeerHost, 40, func(l ...int) *Fault { return peerQuota(5, l...) })},
		{Name: "peer computes slowly", Kind: KindFault, Play: fixed(event.CausePeerHost, 40, func(l ...int) *Fault { return peerSlow(12, l...) })},
		{Name: "peer stalls now and then", Kind: KindFault, Play: fixed(event.CausePeerHost, 40, func(l ...int) *Fault {
			return peerStalls(15*time.Millisecond, l...)
		})},
		{Name: "connections refused", Kind: KindFault, Play: func(g *Engine) []Answer { return g.dead(0) }},
		{Name: "peer answers no more", Kind: KindFault, Play: func(g *Engine) []Answer { return g.dead(30 * time.Second) }},
		{Name: "two of five legs leave RDMA", Kind: KindFault, Legs: 5, Play: func(g *Engine) []Answer { return g.fallback(10) }},
		{Name: "two of five legs leave RDMA, a little slower", Kind: KindCalm, Legs: 5, Play: func(g *Engine) []Answer { return g.fallback(1.7) }},
		{Name: "all legs lossy", Kind: KindFault, Legs: 3, Play: func(g *Engine) []Answer {
			g.around(replyLoss(0.06, 0, 1, 2), 40)
			answers := []Answer{{Cause: event.CauseCommon}}
			for _, name := range g.Legs { // each is: to name one is true
				answers = append(answers, Answer{event.CauseLoss, name})
			}
			return answers
		}},
		{Name: "all legs delayed", Kind: KindHost, Legs: 4, Play: func(g *Engine) []Answer { g.around(delay(15*time.Millisecond, 0, 1, 2, 3), 40); return nobody }},
		{Name: "coordinator at 3% CPU", Kind: KindHost, Play: func(g *Engine) []Answer {
			g.around(coordinatorQuota(3), 40)
			return []Answer{{Cause: event.CauseLocal}}
		}},
		{Name: "coordinator computes slowly", Kind: KindHost, Play: func(g *Engine) []Answer {
			g.around(coordinatorSlow(30), 40)
			return []Answer{{Cause: event.CauseLocal}}
		}},
		{Name: "host load x3", Kind: KindHost, Play: func(g *Engine) []Answer { g.around(everything(3, 0.6), 40); return nobody }},
		{Name: "host load x6, uneven", Kind: KindHost, Play: func(g *Engine) []Answer { g.around(everything(6, 1), 40); return nobody }},
		{Name: Ramp, Kind: KindLoad, Play: func(g *Engine) []Answer {
			g.ramp(20, "warm", nil)
			g.ramp(10, "again", nil)
			return nil
		}},
		{Name: "eight at once, some with long prompts", Kind: KindLoad, Play: func(g *Engine) []Answer {
			// A prompt of 800 tokens holds up the others' answers: by the rule
			// some of them are slow, and no path is to blame.
			g.Clients = 8
			g.Run(200)
			return nobody
		}},
		{Name: LossyRamp, Kind: KindFault, Play: func(g *Engine) []Answer {
			leg := g.victim()
			g.ramp(20, "before", nil)
			g.ramp(10, "fault", replyLoss(0.05, leg))
			return []Answer{{event.CauseLoss, g.Legs[leg]}}
		}},
		{Name: "two at once, 5% loss, source does not count", Kind: KindFault, Play: func(g *Engine) []Answer {
			g.Unsaid, g.Clients, g.Lengths = true, 2, short
			leg := g.victim()
			g.around(replyLoss(0.05, leg), 40)
			return []Answer{{event.CauseLoss, g.Legs[leg]}}
		}},
		{Name: "four at once, 50 ms delay", Kind: KindFault, Play: func(g *Engine) []Answer {
			g.Clients, g.Lengths = 4, short
			leg := g.victim()
			g.around(delay(50*time.Millisecond, leg), 40)
			return []Answer{{event.CauseDelay, g.Legs[leg]}}
		}},
		{Name: "answers become long", Kind: KindMix, Play: func(g *Engine) []Answer {
			g.phase(60, "before", nil)
			g.Lengths = func(r *rand.Rand) (int, int) { return spread(r, 8, 800), spread(r, 200, 500) }
			g.phase(30, "long", nil)
			return nobody
		}},
		{Name: "answers become short", Kind: KindMix, Play: func(g *Engine) []Answer {
			g.Lengths = func(r *rand.Rand) (int, int) { return spread(r, 8, 800), spread(r, 100, 200) }
			g.phase(30, "before", nil)
			g.Lengths = func(r *rand.Rand) (int, int) { return spread(r, 8, 800), spread(r, 8, 16) }
			g.phase(60, "short", nil)
			return nobody
		}},
		{Name: "context grows to 16,000", Kind: KindMix, Play: func(g *Engine) []Answer {
			context := 100.0
			g.Lengths = func(r *rand.Rand) (int, int) { context *= 1.037; return int(context), spread(r, 12, 48) }
			g.phase(140, "before", nil)
			return nobody
		}},
		{Name: "prompts become long at once", Kind: KindMix, Play: func(g *Engine) []Answer {
			g.phase(50, "before", nil)
			g.Lengths = func(r *rand.Rand) (int, int) { return spread(r, 3000, 9000), spread(r, 12, 48) }
			g.phase(40, "long", nil)
			return nobody
		}},
		{Name: "long context, 50 ms delay", Kind: KindFault, Play: func(g *Engine) []Answer {
			leg := g.victim()
			g.Lengths = func(r *rand.Rand) (int, int) { return spread(r, 1500, 4000), spread(r, 12, 48) }
			g.phase(40, "before", nil)
			g.phase(30, "fault", delay(g.toRate(0.25, leg), leg))
			return []Answer{{event.CauseDelay, g.Legs[leg]}}
		}},
		{Name: "slower model under the same name", Kind: KindMix, Play: func(g *Engine) []Answer {
			g.phase(40, "before", nil)
			g.phase(40, "new model", everything(2.5, 0)) // slow by the rule: nobody said that it is another
			return nobody
		}},
		{Name: "slower model, adopted", Kind: KindMix, Play: func(g *Engine) []Answer {
			g.swap(func() { g.out.add(g.nowNS, Adopt{g.Model}) })
			return nil
		}},
		{Name: "slower model, told by its fingerprint", Kind: KindMix, Play: func(g *Engine) []Answer {
			g.Fingerprint = "b7099"
			g.swap(func() { g.Fingerprint = "b7100" })
			return nil
		}},
		{Name: "fault in the last 5 of 30", Kind: KindFault, Play: func(g *Engine) []Answer {
			leg := g.victim()
			g.phase(25, "before", nil)
			g.phase(5, "fault", delay(g.toRate(0.3, leg), leg))
			return []Answer{{event.CauseDelay, g.Legs[leg]}}
		}},
		{Name: "fault that comes, goes and comes again", Kind: KindFault, Play: func(g *Engine) []Answer {
			leg := g.victim()
			for range 3 {
				g.phase(30, "before", nil)
				g.phase(15, "fault", delay(g.toRate(0.3, leg), leg))
			}
			g.phase(30, "after", nil)
			return []Answer{{event.CauseDelay, g.Legs[leg]}}
		}},
		{Name: "flapping", Kind: KindFault, Play: func(g *Engine) []Answer {
			leg := g.victim()
			g.phase(30, "before", nil)
			for range 8 {
				g.phase(4, "fault", peerSlow(40, leg))
				g.phase(3, "between", nil)
			}
			g.phase(30, "after", nil)
			return []Answer{{event.CausePeerHost, g.Legs[leg]}}
		}},
		{Name: "fault from the start, over, and back", Kind: KindFault, Play: func(g *Engine) []Answer {
			leg := g.victim()
			g.phase(15, "cold", replyLoss(0.05, leg))
			g.phase(40, "before", nil)
			g.phase(30, "fault", replyLoss(0.05, leg))
			return []Answer{{event.CauseLoss, g.Legs[leg]}}
		}},
		{Name: "restart in the middle", Kind: KindFault, Play: func(g *Engine) []Answer {
			leg := g.victim()
			g.phase(40, "before", nil)
			g.phase(20, "fault", delay(g.toRate(0.3, leg), leg))
			g.out.add(g.nowNS, Restart{})
			g.nowNS += 5e9
			g.phase(30, "fault", delay(g.toRate(0.3, leg), leg))
			g.phase(20, "after", nil)
			return []Answer{{event.CauseDelay, g.Legs[leg]}}
		}},
		{Name: DecayPath, Kind: KindFault, Play: func(g *Engine) []Answer {
			leg := g.victim()
			g.decay(func(r float64) *Fault { return delay(g.toRate(r, leg), leg) })
			return []Answer{{event.CauseDelay, g.Legs[leg]}}
		}},
		{Name: DecayHost, Kind: KindHost, Play: func(g *Engine) []Answer {
			g.decay(func(r float64) *Fault { return everything(1/r, 0.2) })
			return nobody
		}},
		{Name: LongFault, Kind: KindFault, Play: func(g *Engine) []Answer {
			leg := g.victim()
			g.Lengths = func(r *rand.Rand) (int, int) { return spread(r, 8, 200), spread(r, 12, 40) }
			g.phase(60, "before", nil)
			g.phase(600, "fault", delay(g.toRate(0.4, leg), leg))
			g.phase(20, "after", nil)
			return []Answer{{event.CauseDelay, g.Legs[leg]}}
		}},
		{Name: "queue counters start again", Kind: KindFault, Play: func(g *Engine) []Answer {
			leg := g.victim()
			g.out.add(g.nowNS, event.LegChange{TimeNS: g.nowNS, Leg: g.Legs[leg], Transport: event.TransportTCP, Device: "veth1"})
			start := g.nowNS
			g.around(requestLoss(0.05, leg), 40)
			for at, n := start, uint64(0); at < g.nowNS; at += 1e9 {
				if n++; n%25 == 0 {
					n = 0
				}
				g.out.add(at, event.Qdisc{TimeNS: at, Device: "veth1", Kind: "netem", Handle: "1:", Packets: 4000 * n})
			}
			return []Answer{{event.CauseLoss, g.Legs[leg]}}
		}},
		{Name: "exchanges missing under a fault", Kind: KindFault, Play: func(g *Engine) []Answer {
			leg := g.victim()
			g.phase(40, "before", nil)
			from := len(g.out.Items)
			g.phase(20, "fault", delay(g.toRate(0.3, leg), leg))
			g.out.forget(from)
			g.phase(20, "fault", delay(g.toRate(0.3, leg), leg))
			return []Answer{{event.CauseDelay, g.Legs[leg]}}
		}},
		{Name: "one in ten exchanges missing", Kind: KindFault, Play: func(g *Engine) []Answer {
			leg := g.victim()
			g.around(replyLoss(0.05, leg), 40)
			g.out.thin(g.Random, 0.1)
			return []Answer{{event.CauseLoss, g.Legs[leg]}}
		}},
	}
}

// dead plays requests whose peer is gone, and then is back.
func (g *Engine) dead(hung time.Duration) []Answer {
	leg := g.victim()
	g.phase(40, "before", nil)
	g.Condition = "fault"
	for range 6 {
		g.failing(leg, hung)
	}
	g.phase(20, "after", nil)
	return []Answer{{event.CauseDeadPath, g.Legs[leg]}}
}

// fallback takes two legs off RDMA.
func (g *Engine) fallback(factor float64) []Answer {
	for _, name := range g.Legs {
		g.out.add(g.nowNS, event.LegChange{TimeNS: g.nowNS, Leg: name, Transport: event.TransportRDMA})
	}
	g.phase(40, "before", nil)
	gone := g.Random.Perm(len(g.Legs))[:2]
	var answers []Answer
	for _, leg := range gone {
		g.out.add(g.nowNS, event.LegChange{TimeNS: g.nowNS, Leg: g.Legs[leg], Transport: event.TransportFallback, Reason: "port_not_probed"})
		answers = append(answers, Answer{event.CauseRDMAFallback, g.Legs[leg]})
	}
	g.phase(40, "fault", peerSlow(factor, gone...))
	return answers
}

// swap puts another model of 0.4 of the speed under the same name, once it is
// loaded.
func (g *Engine) swap(told func()) {
	g.phase(40, "before", nil)
	g.Pause(5 * time.Second)
	told()
	g.Speed = 2.5
	g.phase(60, "new model", nil)
}

// decay lowers the rate from 1 to 0.35 over 2,000 requests, then holds it.
func (g *Engine) decay(at func(r float64) *Fault) {
	g.out.Decay = true
	g.Lengths = func(r *rand.Rand) (int, int) { return spread(r, 8, 200), spread(r, 12, 40) }
	g.phase(60, "before", nil)
	for i := range 200 {
		r := 1 - 0.65*float64(i+1)/200
		g.phase(10, "fault", at(r))
	}
	g.phase(40, "fault", at(0.35))
}

// forget drops the exchanges known since an item: the collector was down.
func (t *Timeline) forget(from int) {
	kept := t.Items[:from]
	for _, item := range t.Items[from:] {
		if _, is := item.What.(event.Exchange); !is {
			kept = append(kept, item)
		}
	}
	t.Items = kept
}

// thin drops a part of all exchanges: the ring buffer was full.
func (t *Timeline) thin(random *rand.Rand, part float64) {
	kept := t.Items[:0]
	for _, item := range t.Items {
		if _, is := item.What.(event.Exchange); !is || random.Float64() >= part {
			kept = append(kept, item)
		}
	}
	t.Items = kept
}
