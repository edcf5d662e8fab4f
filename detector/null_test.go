package detector

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"grayfail/event"
)

// Forty days of a series without any fault, a request every ten seconds, at
// three noise levels: at most four alarms. The noise has a slow part too, as
// machines that share their cores with other work do.
func TestNullDays(t *testing.T) {
	for _, sigma := range []float64{0.10, 0.15, 0.20} {
		const days, perDay = 40, 8640
		random := rand.New(rand.NewPCG(uint64(sigma*100), 1))
		d := New(DefaultConfig())
		now := int64(1_800_000_000e9)
		slow, alarms, drift := 0, 0, 0.0
		for range days * perDay {
			now += int64(10 * time.Second)
			drift = 0.999*drift + 0.44*math.Sqrt(1-0.999*0.999)*random.NormFloat64() // 0.44^2 + 0.9^2 = 1
			d.Request(event.Request{
				ID: "r", Source: "s", Model: "m", EndNS: now, GeneratedTokens: 32, Outcome: event.OutcomeOK, Concurrency: 1,
				DecodeRate: 100 * math.Exp(sigma*(drift+0.9*random.NormFloat64())),
			})
			out := d.Advance(now)
			alarms += len(out.Opened)
			for i := range out.Rows {
				if out.Rows[i].Verdict == event.VerdictSlow {
					slow++
				}
			}
		}
		t.Logf("sigma %.2f: %d of %d requests slow, %d alarms in %d days", sigma, slow, days*perDay, alarms, days)
		if alarms > days/10 {
			t.Errorf("sigma %.2f: %d alarms in %d days without a fault", sigma, alarms, days)
		}
	}
}

// The fault of 600 requests at 0.4 of the usual rate, with noise: nearly all
// that are truly below half must be found, at the end as at the beginning.
func TestLongFaultUnderNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	d := New(DefaultConfig())
	now := int64(1_800_000_000e9)
	one := func(rate float64) event.Verdict {
		now += 1e9
		d.Request(event.Request{ID: "r", Source: "s", Model: "m", EndNS: now, GeneratedTokens: 32, Outcome: event.OutcomeOK, Concurrency: 1, DecodeRate: rate})
		return d.Advance(now + 2e9).Rows[0].Verdict
	}
	noise := func() float64 { return math.Exp(0.15 * random.NormFloat64()) }
	for range 100 {
		one(100 * noise())
	}
	below, found := 0, 0
	for range 600 {
		rate := 40 * noise()
		verdict := one(rate)
		if rate < 50 {
			below++
			if verdict == event.VerdictSlow {
				found++
			}
		}
	}
	if below < 500 || float64(found) < 0.98*float64(below) {
		t.Errorf("%d of %d found", found, below)
	}
}
