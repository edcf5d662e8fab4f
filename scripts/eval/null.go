package main

import (
	"math"
	"math/rand/v2"
	"time"

	"grayfail/detector"
	"grayfail/event"
	"grayfail/scripts/eval/scenario"
)

// nullDays are days without any fault at one noise level.
type nullDays struct {
	Sigma      float64 `json:"sigma"`
	SeriesDays int     `json:"series_days"`
	Requests   int     `json:"requests"`
	Slow       int     `json:"slow"`
	Alarms     int     `json:"alarms"`
	PerDay     float64 `json:"alarms_per_day_and_series"`
	PathsNamed int     `json:"paths_named"`
	MostSlow   int     `json:"most_slow_in_ten"`
}

// playNull plays days of a request every ten seconds, answers of mixed length.
// A fifth of the noise's variance wanders over hours, as machines that share
// their cores do; the rest is new for every request.
func playNull(sigma float64, days int) nullDays {
	const perDay = 8640
	out := nullDays{Sigma: sigma, SeriesDays: days, Requests: days * perDay}
	random := rand.New(rand.NewPCG(uint64(math.Round(sigma*100)), 77))
	d := detector.New(detector.DefaultConfig())
	now, drift := int64(1_800_000_000e9), 0.0
	var recent []int
	for i := range out.Requests {
		now += int64(10 * time.Second)
		drift = 0.999*drift + 0.44*math.Sqrt(1-0.999*0.999)*random.NormFloat64()
		d.Request(event.Request{
			ID: "r", Source: "s", Model: "m", EndNS: now, GeneratedTokens: 12 + random.IntN(200), Outcome: event.OutcomeOK, Concurrency: 1,
			DecodeRate: 100 * math.Exp(sigma*(drift+0.9*random.NormFloat64())),
		})
		said := d.Advance(now)
		out.Alarms += len(said.Opened)
		for k := range said.Rows {
			if said.Rows[k].Verdict != event.VerdictSlow {
				continue
			}
			out.Slow++
			if said.Rows[k].Leg != "" {
				out.PathsNamed++
			}
			recent = append(recent, i)
			for recent[0]+openWithin <= i {
				recent = recent[1:]
			}
			out.MostSlow = max(out.MostSlow, len(recent))
		}
	}
	out.PerDay = float64(out.Alarms) / float64(days)
	return out
}

// allNull plays the same at every noise level.
func allNull(days int) (out []nullDays) {
	out = make([]nullDays, len(scenario.Sigmas))
	parallel(len(out), func(i int) { out[i] = playNull(scenario.Sigmas[i], days) })
	return out
}
