package scenario

import (
	"math"
	"slices"
	"time"

	"grayfail/event"
)

// Fault changes exchanges before they happen, and the time between them.
type Fault struct {
	Exchange func(g *Engine, leg int, e *event.Exchange)
	// Local returns what passes on no leg beyond took.
	Local func(g *Engine, took time.Duration) time.Duration

	legs []int         // that are hit; for the RTT
	trip time.Duration // what the path adds to every round trip
}

func (f *Fault) hits(leg int) bool { return slices.Contains(f.legs, leg) }

// on limits a change to some legs.
func on(legs []int, change func(g *Engine, leg int, e *event.Exchange)) *Fault {
	f := &Fault{legs: legs}
	f.Exchange = func(g *Engine, leg int, e *event.Exchange) {
		if f.hits(leg) {
			change(g, leg, e)
		}
	}
	return f
}

// answer moves the whole reply.
func answer(e *event.Exchange, d time.Duration) {
	e.FirstByte, e.Duration = e.FirstByte+d, e.Duration+d
}

// replyLoss drops reply packets with chance p. How often that marks an
// exchange, and how, is drawn from the recordings of 5% loss.
func replyLoss(p float64, legs ...int) *Fault {
	return on(legs, func(g *Engine, leg int, e *event.Exchange) { g.loseReply(p, e) })
}

func (g *Engine) loseReply(p float64, e *event.Exchange) {
	m := g.lost[replySize(e.ReplyBytes)]
	if g.Random.Float64() >= 1-math.Pow(1-m.share, p/0.05) {
		return
	}
	x := &m.pool[g.Random.IntN(len(m.pool))]
	e.Duration, e.FirstByte, e.Ack = e.Duration+max(x.duration, x.first), e.FirstByte+x.first, e.Ack+min(x.ack, x.first)
	e.Stall, e.OutOfOrder = max(e.Stall, x.stall), e.OutOfOrder+x.outOfOrder
	// The worker sends again: only its own host can see that.
	kind := event.RetransmitFast
	if x.duration >= 190*time.Millisecond {
		kind = event.RetransmitRTO
	}
	g.out.add(e.SendNS+int64(e.Duration), event.Retransmit{Leg: e.Leg, TimeNS: e.SendNS + int64(e.Duration), Kind: kind, Side: event.SideWorker})
}

// burstLoss is a Gilbert-Elliott channel: half of the packets are lost in bad
// stretches, which hold a tenth of the exchanges.
func burstLoss(legs ...int) *Fault {
	bad := false
	return on(legs, func(g *Engine, leg int, e *event.Exchange) {
		if bad {
			bad = g.Random.Float64() >= 0.1
		} else {
			bad = g.Random.Float64() < 0.011
		}
		if bad {
			g.loseReply(0.5, e)
		}
	})
}

// requestLoss drops packets to the peer: this host sends again. A tail probe
// comes after two round trips and the peer's delayed ACK, a timeout after 200
// ms and a little (net/ipv4/tcp_output.c: tcp_schedule_loss_probe; TCP_RTO_MIN);
// packets carry up to 64 kB, and a lost one that others follow is repaired
// within a round trip.
func requestLoss(p float64, legs ...int) *Fault {
	return on(legs, func(g *Engine, leg int, e *event.Exchange) {
		packets := 1 + int(e.RequestBytes>>14)
		for i := range packets {
			if g.Random.Float64() >= p {
				continue
			}
			wait, kind := time.Duration(9e6+g.Random.Int64N(8e6)), event.RetransmitTLP
			switch {
			case i < packets-3:
				wait, kind = time.Duration(5e5+g.Random.Int64N(1e6)), event.RetransmitFast
			case g.Random.IntN(3) == 0:
				wait, kind = time.Duration(204e6+g.Random.Int64N(12e6)), event.RetransmitRTO
			}
			e.Retransmits++
			answer(e, wait)
			e.Ack += wait
			at := e.SendNS + int64(e.Ack)
			g.out.add(at, event.Retransmit{Leg: e.Leg, TimeNS: at, Kind: kind, Side: event.SideCoordinator})
		}
	})
}

// delay holds packets of either direction: the ACK comes late, and the reply
// right after (recorded with 50 ms: ACK 50.5 ms, RTT 0.08 -> 50.9 ms).
func delay(d time.Duration, legs ...int) *Fault {
	f := on(legs, func(g *Engine, leg int, e *event.Exchange) {
		answer(e, d)
		e.Ack += d
	})
	f.trip = d
	return f
}

// slowReplies limits the peer's egress: a reply arrives evenly slow, nothing
// is lost and the coordinator's RTT does not move (recorded with 20 Mbit/s).
func slowReplies(bitsPerSecond float64, legs ...int) *Fault {
	return on(legs, func(g *Engine, leg int, e *event.Exchange) {
		d := time.Duration(float64(e.ReplyBytes) * 8 / bitsPerSecond * 1e9)
		e.Duration, e.Stall = e.Duration+d, max(e.Stall, d/20)
	})
}

// slowRequests limits the way to the peer: the last segment is ACKed late.
func slowRequests(bitsPerSecond float64, legs ...int) *Fault {
	return on(legs, func(g *Engine, leg int, e *event.Exchange) {
		d := time.Duration(float64(e.RequestBytes) * 8 / bitsPerSecond * 1e9)
		answer(e, d)
		e.Ack, e.RTT = e.Ack+d, e.RTT+d/2
	})
}

// reorder lets a part of the segments overtake the others.
func reorder(p float64, held time.Duration, legs ...int) *Fault {
	return on(legs, func(g *Engine, leg int, e *event.Exchange) {
		if e.ReplyBytes > 1448 && g.Random.Float64() < p {
			e.OutOfOrder++
			e.Duration, e.Stall = e.Duration+held, max(e.Stall, held)
		}
	})
}

// duplicate sends requests twice: the peer answers with a DSACK.
func duplicate(p float64, legs ...int) *Fault {
	return on(legs, func(g *Engine, leg int, e *event.Exchange) {
		if g.Random.Float64() < p {
			e.DSACKs++
		}
	})
}

// period of the CPU bandwidth controller (cpu.cfs_period_us).
const period = 100 * time.Millisecond

// peerQuota gives the peer's process a part of a CPU: what it may not use of
// 100 ms it must wait for. A stall falls before the reply or into it.
func peerQuota(percent float64, legs ...int) *Fault {
	share, used := time.Duration(percent/100*float64(period)), time.Duration(0)
	return on(legs, func(g *Engine, leg int, e *event.Exchange) {
		for used += e.FirstByte; used > share; used -= share {
			stall := period - share
			if g.Random.IntN(3) == 0 && e.ReplyBytes > 1448 {
				e.Duration, e.Stall = e.Duration+stall, max(e.Stall, stall)
			} else {
				answer(e, stall)
			}
		}
	})
}

// peerSlow is a peer that computes slower, by a factor that varies.
func peerSlow(factor float64, legs ...int) *Fault {
	return on(legs, func(g *Engine, leg int, e *event.Exchange) {
		answer(e, time.Duration(float64(e.FirstByte)*(factor-1)*(0.6+0.8*g.Random.Float64())))
	})
}

// peerStalls stops the peer now and then, for 40 to 170 ms: a collection of
// garbage, a page fault, another tenant.
func peerStalls(every time.Duration, legs ...int) *Fault {
	left := every
	return on(legs, func(g *Engine, leg int, e *event.Exchange) {
		if left -= e.Duration; left < 0 {
			answer(e, time.Duration(40e6+g.Random.Int64N(130e6)))
			left = time.Duration(float64(every) * g.Random.ExpFloat64())
		}
	})
}

// coordinatorQuota gives this host's process a part of a CPU: its stalls fall
// between exchanges (recorded with 3%: 97% of the excess on no leg).
func coordinatorQuota(percent float64) *Fault {
	share, used := time.Duration(percent/100*float64(period)), time.Duration(0)
	return &Fault{Local: func(g *Engine, took time.Duration) (more time.Duration) {
		for used += took; used > share; used -= share {
			more += period - share
		}
		return more
	}}
}

// coordinatorSlow multiplies the time on no leg.
func coordinatorSlow(factor float64) *Fault {
	return &Fault{Local: func(g *Engine, took time.Duration) time.Duration {
		return time.Duration(float64(took) * (factor - 1) * (0.6 + 0.8*g.Random.Float64()))
	}}
}

// everything slows the whole machine, with all that runs on it, by a factor
// that varies from exchange to exchange by spread.
func everything(factor, spread float64) *Fault {
	jitter := func(g *Engine) float64 { return (factor - 1) * (1 - spread + 2*spread*g.Random.Float64()) }
	return &Fault{
		Exchange: func(g *Engine, leg int, e *event.Exchange) {
			answer(e, time.Duration(float64(e.FirstByte)*jitter(g)))
			e.Duration += time.Duration(float64(e.Duration-e.FirstByte) * jitter(g) / 2)
		},
		Local: func(g *Engine, took time.Duration) time.Duration { return time.Duration(float64(took) * jitter(g)) },
	}
}

// both plays two faults at once.
func both(a, b *Fault) *Fault {
	return &Fault{legs: append(slices.Clone(a.legs), b.legs...), trip: max(a.trip, b.trip), Exchange: func(g *Engine, leg int, e *event.Exchange) {
		a.Exchange(g, leg, e)
		b.Exchange(g, leg, e)
	}}
}

// toRate is the delay of each exchange of a leg that brings the rate of a
// request alone down to r.
func (g *Engine) toRate(r float64, leg int) time.Duration {
	p, token, mine := g.profile, time.Duration(0), 0
	for i := range g.Legs {
		kinds := p.inner
		if i == len(g.Legs)-1 {
			kinds = p.last
		}
		for _, k := range kinds {
			token += mean(k.pool)
		}
		if i == leg {
			mine = len(kinds)
		}
	}
	for _, d := range p.local {
		token += d / time.Duration(len(p.local))
	}
	return time.Duration(float64(token) * (1/r - 1) / float64(mine))
}

func mean(pool []turn) time.Duration {
	var sum time.Duration
	for i := range pool {
		sum += pool[i].duration
	}
	return sum / time.Duration(len(pool))
}

// failing plays a request that ends without an answer, after a few tokens: the
// peer of a leg is gone. hung is how long its exchange stays open; 0 means
// that connections are refused.
func (g *Engine) failing(leg int, hung time.Duration) {
	g.Drain()
	g.admit()
	r := g.active[0]
	for range 4 {
		g.step()
	}
	outcome, open := event.OutcomeError, event.Exchange{
		Leg: g.Legs[leg], SendNS: g.nowNS, RequestBytes: g.profile.inner[0].request, RTT: 80 * time.Microsecond, Open: true,
		Flow: event.Flow{Socket: g.socket + uint64(leg+1)},
	}
	if hung > 0 {
		outcome = event.OutcomeTimeout
		for at := time.Second; at <= hung; at += time.Second { // the scan of open ones
			open.Duration = at
			g.out.exchange(open)
		}
		g.nowNS += int64(hung)
	} else {
		g.nowNS += int64(20 * time.Millisecond)
		for range 2 {
			g.out.add(g.nowNS, event.Connection{Leg: g.Legs[leg], StartNS: g.nowNS - 1e6, EndNS: g.nowNS})
		}
	}
	g.socket += uint64(len(g.Legs)) // what comes after opens new connections
	q := &r.request
	q.EndNS, q.GeneratedTokens, q.Outcome = g.nowNS, r.done, outcome
	if !g.Unsaid {
		q.Concurrency = 1
	}
	g.active = g.active[:0]
	g.out.request(*q, Truth{ID: q.ID, EndNS: q.EndNS, Condition: q.Condition, InFlight: 1, Failed: true, FaultShare: 1})
}
