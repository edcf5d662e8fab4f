package scenario

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"grayfail/event"
)

// Engine plays a pipelined engine over several workers with continuous
// batching: one step serves every request in flight, one leg after the other.
type Engine struct {
	Legs   []string
	Random *rand.Rand
	// Sigma of the logarithm of the rate.
	Sigma float64
	// Clients send one request after the other; each waits Think in between.
	Clients int
	Think   time.Duration
	// Lengths draws the tokens of the next request's prompt and answer.
	Lengths func(*rand.Rand) (prompt, output int)
	// Speed multiplies the time of everything: another model, another build.
	Speed float64
	Model string
	// Fingerprint is what the engine says of its build.
	Fingerprint string
	Condition   string
	Fault       *Fault
	// Unsaid leaves out how many requests were in flight.
	Unsaid bool

	profile *profile
	lost    map[int]*marks
	nowNS   int64
	serial  int
	drift   float64
	active  []*running
	rtt     []time.Duration // smoothed, of each leg
	socket  uint64          // of the leg before the first
	out     *Timeline
}

// running is a request in flight.
type running struct {
	request      event.Request
	output, done int
	pace         float64 // logarithm
	prefilled    bool
	weighted     float64       // in flight x ns
	usual        time.Duration // of decode, without noise and fault
	fault        time.Duration // what the fault added to decode
	legs         []time.Duration
	decodeNS     int64
}

// The parts of the noise: most is new for every request, some wanders over
// hundreds, as on machines that share their cores: 0.9^2 + 0.44^2 = 1.
const (
	freshNoise  = 0.9
	slowNoise   = 0.44
	slowPersist = 0.99
)

// crowding is how much longer a step takes with c requests in flight: a
// request alone runs at 1, two at once at 0.45 each, eight at 0.23 (measured
// with llama.cpp over two workers on two cores).
func crowding(c int) float64 {
	if c <= 1 {
		return 1
	}
	return math.Pow(float64(c)/2, math.Log(0.45/0.23)/math.Log(4)) / 0.45
}

// reach is how much longer a step takes with this many tokens of context: an
// assumption, a third more at 4,096. Decode reads the whole cache each token.
func reach(context int) float64 { return 1 + float64(context)/12_288 }

// A prompt's tokens go in chunks of 512 (llama.cpp's default ubatch); a chunk
// of 36 tokens took 5.7 times as long as a decoded token (0.7.0 recording).
const (
	chunk          = 512
	tokensPerDecod = 8.0
)

// Run plays until n more requests have completed; the others stay in flight.
func (g *Engine) Run(n int) {
	for n > 0 {
		for len(g.active) < g.Clients {
			g.admit()
		}
		n -= g.step()
	}
}

// Drain completes what is in flight.
func (g *Engine) Drain() {
	for len(g.active) > 0 {
		g.step()
	}
}

// Pause lets time pass without load.
func (g *Engine) Pause(d time.Duration) {
	g.Drain()
	g.nowNS += int64(d)
}

func (g *Engine) admit() {
	if len(g.active) == 0 {
		g.nowNS += int64(g.Think)
	}
	g.serial++
	g.drift = slowPersist*g.drift + slowNoise*math.Sqrt(1-slowPersist*slowPersist)*g.Random.NormFloat64()
	prompt, output := g.Lengths(g.Random)
	g.active = append(g.active, &running{
		request: event.Request{
			ID: fmt.Sprintf("r%d", g.serial), Source: "main", Model: g.Model, StartNS: g.nowNS,
			PromptTokens: prompt, Outcome: event.OutcomeOK, Condition: g.Condition, Fingerprint: g.Fingerprint,
		},
		output: output, pace: g.Sigma * (g.drift + freshNoise*g.Random.NormFloat64()),
		legs: make([]time.Duration, len(g.Legs)),
	})
}

// step serves all requests in flight with a token, or one with its prompt;
// it returns how many completed.
func (g *Engine) step() int {
	var fresh *running
	pace, context := 0.0, 0
	for _, r := range g.active {
		if !r.prefilled && fresh == nil {
			fresh = r
		}
		pace += r.pace
		context += r.request.PromptTokens + r.done
	}
	// The noise of several requests is one machine's: its spread stays.
	pace /= math.Sqrt(float64(len(g.active)))
	context /= len(g.active)
	started := g.nowNS
	if fresh != nil {
		for left := fresh.request.PromptTokens; left > 0; left -= chunk {
			part := min(left, chunk)
			usual, fault := g.round(math.Exp(fresh.pace), 1+float64(part)/tokensPerDecod, part, nil)
			// The others wait: it is their time too, as without fault.
			for _, r := range g.active {
				if r != fresh && r.prefilled {
					r.usual, r.fault = r.usual+usual, r.fault+fault
				}
			}
		}
		fresh.prefilled, fresh.done, fresh.decodeNS = true, 1, g.nowNS
		fresh.request.FirstTokenNS = g.nowNS
	} else {
		legs := make([]time.Duration, len(g.Legs))
		usual, fault := g.round(math.Exp(pace), crowding(len(g.active))*reach(context), len(g.active), legs)
		for _, r := range g.active {
			r.usual, r.fault, r.done = r.usual+usual, r.fault+fault, r.done+1
			for i, d := range legs {
				r.legs[i] += d
			}
		}
	}
	for _, r := range g.active {
		r.weighted += float64(len(g.active)) * float64(g.nowNS-started)
	}
	return g.finish()
}

// round plays what one step needs on each leg. rows is how many tokens it
// carries: replies and hidden states grow with it.
func (g *Engine) round(pace, scale float64, rows int, legs []time.Duration) (usual, fault time.Duration) {
	p, speed := g.profile, scale*g.Speed
	local := time.Duration(float64(p.local[g.Random.IntN(len(p.local))]) * speed)
	for i, name := range g.Legs {
		kinds := p.inner
		if i == len(g.Legs)-1 {
			kinds = p.last
		}
		for _, k := range kinds {
			t := g.draw(k, scale)
			stretch := func(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }
			by := pace * speed
			e := event.Exchange{
				Leg: name, SendNS: g.nowNS, Duration: stretch(t.duration, by), FirstByte: stretch(t.first, by), Ack: t.ack,
				Stall: t.stall, RequestBytes: k.request, ReplyBytes: k.reply, RTT: t.rtt, Retransmits: t.retransmits, DSACKs: t.dsacks,
				Flow: event.Flow{Socket: g.socket + uint64(i+1)},
			}
			if k.request > 1000 { // it carries them
				e.RequestBytes += p.row * uint64(rows-1)
			}
			if rows > 1 && k.reply > 1000 { // one row of logits or hidden state each
				e.ReplyBytes *= uint64(min(rows, 16))
			}
			if t.ack > t.first*3/4 { // it rode on the reply
				e.Ack = stretch(t.ack, by)
			}
			e.Ack = min(e.Ack, e.FirstByte)
			e.Stall = min(e.Stall, e.Duration-e.FirstByte)
			usual += stretch(t.duration, speed)
			clean := e.Duration
			if g.Fault != nil && g.Fault.Exchange != nil {
				g.Fault.Exchange(g, i, &e)
			}
			e.Ack, e.Stall = min(e.Ack, e.FirstByte), min(e.Stall, e.Duration-e.FirstByte)
			g.smooth(i, &e)
			fault += e.Duration - clean
			if legs != nil {
				legs[i] += e.Duration
			}
			g.nowNS += int64(e.Duration)
			g.out.exchange(e)
		}
		if i < len(g.Legs)-1 { // what passes between two legs
			g.nowNS += int64(float64(local) * pace / 4 / float64(len(g.Legs)))
		}
	}
	rest := local - time.Duration(float64(local)/4/float64(len(g.Legs)))*time.Duration(len(g.Legs)-1)
	usual += local
	took := time.Duration(float64(rest) * pace)
	if g.Fault != nil && g.Fault.Local != nil {
		more := g.Fault.Local(g, took)
		fault, took = fault+more, took+more
	}
	g.nowNS += int64(took)
	return usual, fault
}

// draw takes a recorded exchange. One that computes more than a token is as
// steady as the mean of several: what disturbs it does not grow with it.
func (g *Engine) draw(k *kind, scale float64) turn {
	t := k.pool[g.Random.IntN(len(k.pool))]
	more := min(32, int(scale)) - 1
	for range more {
		x := &k.pool[g.Random.IntN(len(k.pool))]
		t.duration, t.first = t.duration+x.duration, t.first+x.first
	}
	if more > 0 {
		t.duration, t.first = t.duration/time.Duration(more+1), t.first/time.Duration(more+1)
	}
	return t
}

// smooth gives the RTT that the kernel would show: an eighth of each new one
// (tcp_rtt_estimator), when a fault moved the ACK.
func (g *Engine) smooth(leg int, e *event.Exchange) {
	if g.rtt == nil {
		g.rtt = make([]time.Duration, len(g.Legs))
	}
	if g.Fault == nil || g.Fault.trip == 0 {
		g.rtt[leg] -= g.rtt[leg] / 8
	} else if g.Fault.hits(leg) {
		g.rtt[leg] += (g.Fault.trip - g.rtt[leg]) / 8
	}
	e.RTT += g.rtt[leg]
}

// finish takes the requests that have all their tokens out.
func (g *Engine) finish() int {
	kept, finished := g.active[:0], 0
	for _, r := range g.active {
		if r.done < r.output {
			kept = append(kept, r)
			continue
		}
		finished++
		g.complete(r)
	}
	g.active = kept
	return finished
}

func (g *Engine) complete(r *running) {
	q := &r.request
	q.EndNS, q.GeneratedTokens = g.nowNS, r.done
	if d := float64(q.EndNS - r.decodeNS); d > 0 && r.done > 1 {
		q.DecodeRate = float64(r.done-1) / d * 1e9
	}
	if d := float64(q.FirstTokenNS - q.StartNS); d > 0 {
		q.PrefillRate = float64(q.PromptTokens) / d * 1e9
	}
	inFlight := r.weighted / float64(q.EndNS-q.StartNS)
	if !g.Unsaid {
		q.Concurrency = inFlight
	}
	t := Truth{ID: q.ID, EndNS: q.EndNS, Condition: q.Condition, InFlight: inFlight, Rate: q.DecodeRate, Tokens: r.done}
	t.fault, t.usual, t.context, t.regime = r.fault, r.usual, q.PromptTokens+r.done, g.Speed
	for _, d := range r.legs {
		t.LegSeconds = append(t.LegSeconds, d.Seconds()/float64(max(1, r.done-1)))
	}
	g.out.request(*q, t)
}
