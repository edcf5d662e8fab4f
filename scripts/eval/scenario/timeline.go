package scenario

import (
	"cmp"
	"hash/fnv"
	"math"
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
	// R is the decode rate over that of the same request without noise and
	// fault; PrefillR the same of a prompt of 64 tokens and more, else 0.
	R, PrefillR float64
	// FaultShare of the time lost that the fault took, not the noise.
	FaultShare float64
	// Failed says that the outcome was an error or a timeout.
	Failed bool
	// LegSeconds a token on each leg.
	LegSeconds []float64
}

// Slow is the rule, on the measured rate.
func (t *Truth) Slow() bool { return t.Failed || t.R < 0.5 }

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
}

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
	return out
}

// mixed are lengths of chat: prompts of 8 to 800 tokens, answers of 12 to 96,
// both evenly spread over their logarithm.
func mixed(r *rand.Rand) (prompt, output int) {
	return spread(r, 8, 800), spread(r, 12, 96)
}

func spread(r *rand.Rand, low, high float64) int {
	return int(low * math.Exp(r.Float64()*math.Log(high/low)))
}
