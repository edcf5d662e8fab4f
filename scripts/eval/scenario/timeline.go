package scenario

import (
	"cmp"
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"grayfail/event"
)

// Truth is what is known of one request by construction.
type Truth struct {
	ID        string
	EndNS     int64
	Condition string
	InFlight  float64
	Rate      float64
	Tokens    int
	// R is the decode rate over the median of the control: the requests of the
	// same stratum that no fault touched. Where there are fewer than ten, over
	// the rate of the same request without noise and fault.
	R float64
	// FaultShare of the time lost by R that the fault took, and not noise or
	// neighbours.
	FaultShare float64
	// Failed says that the outcome was an error or a timeout.
	Failed bool
	// LegSeconds a token on each leg.
	LegSeconds []float64

	fault, usual time.Duration
	context      int
	regime       float64
	held         float64
}

// Slow is the rule, on the measured rate.
func (t *Truth) Slow() bool { return t.Failed || t.R < 0.5 }

// MaySlow is Slow, and in a slow decay also what is below half of the control
// but not of the baseline that the anchor holds: either answer is right then.
func (t *Truth) MaySlow() bool { return t.Failed || t.R*t.held < 0.5 }

// Item is one thing that the program came to know at a moment: an event of
// package event by value, Adopt or Restart.
type Item struct {
	AtNS int64
	What any
}

// Adopt is the operator's call; Restart ends the exporter and starts it again.
type (
	Adopt   struct{ Model string }
	Restart struct{}
)

// Timeline is what one scenario comes to.
type Timeline struct {
	Legs   []string
	Items  []Item  // in the order in which they were known
	Truths []Truth // in the order in which the requests ended
	Accept []Answer
	Seed   uint64
	Sigma  float64
	Engine string
	// Decay says that the fault grows so slowly that no median shows it; the
	// baseline is then held at heldShare of the anchor, and so is the truth.
	Decay bool
}

// heldShare of the last accepted regime is the least a baseline falls to, by
// the design.
const heldShare = 0.9

// Answer is a cause and a leg that are right.
type Answer struct {
	Cause event.Cause
	Leg   string
}

func (t *Timeline) exchange(e event.Exchange) {
	t.Items = append(t.Items, Item{e.SendNS + int64(e.Duration), e})
}

func (t *Timeline) request(q event.Request, truth Truth) {
	t.Items = append(t.Items, Item{q.EndNS, q})
	t.Truths = append(t.Truths, truth)
}

func (t *Timeline) add(atNS int64, what any) { t.Items = append(t.Items, Item{atNS, what}) }

// Scenario is one way to spend a day.
type Scenario struct {
	Name string
	// Kind: fault (a path or peer is to blame), host (this one), load and mix
	// (what was asked for changed), calm (nothing that a rule calls slow).
	Kind string
	Play func(g *Engine) []Answer
	// Legs is how many; 0 means any.
	Legs int
}

// Sigmas are the noise levels; a seed has one of them.
var Sigmas = []float64{0.10, 0.15, 0.20}

// Make plays a scenario with a seed. The seed decides the noise level, the
// number of legs, the generation of the engine and which leg is hit.
func (r *Recordings) Make(s Scenario, seed uint64) *Timeline {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.Name))
	random := rand.New(rand.NewPCG(seed, h.Sum64()))
	n := s.Legs
	if n == 0 {
		n = []int{2, 3, 1, 5, 4}[random.IntN(5)]
	}
	names := []string{"rpc-a", "rpc-b", "rpc-c", "rpc-d", "rpc-e"}[:n]
	p := r.profiles[random.IntN(len(r.profiles))]
	out := &Timeline{Legs: names, Seed: seed, Sigma: Sigmas[(seed/2)%uint64(len(Sigmas))], Engine: p.name}
	g := &Engine{
		Legs: names, Random: random, Sigma: out.Sigma, Clients: 1, Think: 50 * time.Millisecond, Lengths: mixed,
		Speed: 1, Model: "m", Condition: "before", profile: p, lost: r.lost, nowNS: 1_800_000_000e9, out: out,
	}
	out.Accept = s.Play(g)
	g.Drain()
	slices.SortStableFunc(out.Items, func(a, b Item) int { return cmp.Compare(a.AtNS, b.AtNS) })
	slices.SortStableFunc(out.Truths, func(a, b Truth) int { return cmp.Compare(a.EndNS, b.EndNS) })
	out.settle()
	return out
}

// settle gives each request its R.
func (t *Timeline) settle() {
	control := make(map[stratum][]float64)
	for i := range t.Truths {
		x := &t.Truths[i]
		if x.fault == 0 && !x.Failed && x.Tokens > 1 {
			leaf := stratumOf(x)
			for _, key := range []stratum{leaf, leaf.parent()} {
				control[key] = append(control[key], x.Rate)
			}
		}
	}
	for _, rates := range control {
		slices.Sort(rates)
	}
	for i := range t.Truths {
		x := &t.Truths[i]
		x.held = 1
		if t.Decay {
			x.held = heldShare
		}
		if x.Failed || x.Rate == 0 {
			continue
		}
		took := float64(x.Tokens-1) / x.Rate
		usual := x.usual.Seconds()
		leaf := stratumOf(x)
		for _, key := range []stratum{leaf, leaf.parent()} {
			if rates := control[key]; len(rates) >= 10 {
				usual = float64(x.Tokens-1) / ((rates[(len(rates)-1)/2] + rates[len(rates)/2]) / 2)
				break
			}
		}
		x.R = usual / took / x.held
		x.FaultShare = x.fault.Seconds() / max(1e-6, took-usual)
	}
}

// stratum holds the requests that may be compared, as the design has it: of
// one regime, concurrency (1, 2, 3-4, 5-8, ...), context (powers of four from
// 1024) and length of answer (8-31, 32-127, ...).
type stratum struct {
	regime                       float64
	concurrency, context, output int
}

func (s stratum) parent() stratum { s.output = 0; return s }

func stratumOf(t *Truth) stratum {
	s := stratum{regime: t.regime, concurrency: Bucket(t.InFlight), output: 1 + (bits.Len(uint(t.Tokens)>>3)+1)/2}
	if t.context > 1024 {
		s.context = (bits.Len(uint(t.context-1)>>10) + 1) / 2
	}
	return s
}

// Bucket of concurrency: 1, 2, 3-4, 5-8, ..., numbered from 0.
func Bucket(inFlight float64) int { return bits.Len64(uint64(max(1, math.Round(inFlight))) - 1) }

// mixed are lengths of chat: prompts of 8 to 800 tokens, answers of 12 to 96,
// both evenly spread over their logarithm.
func mixed(r *rand.Rand) (prompt, output int) {
	return spread(r, 8, 800), spread(r, 12, 96)
}

func spread(r *rand.Rand, low, high float64) int {
	return int(low * math.Exp(r.Float64()*math.Log(high/low)))
}
