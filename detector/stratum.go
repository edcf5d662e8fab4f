package detector

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"grayfail/event"
)

// stratumKey says which requests may be compared. Strata of a leaf (with an
// output bucket) borrow from their parent (output 0) and from a neighbour in
// context, never across concurrency: two requests at once run at 0.45 and
// eight at 0.23 of the single rate by design.
type stratumKey struct {
	concurrency, context, output uint8
	// fingerprint is the engine's fingerprint, by its place in series.prints.
	fingerprint uint8
	// guessed: token counts guessed from chunks and counted ones are two
	// populations. An engine that puts several tokens into a chunk would look
	// slow wherever it is counted by chunks.
	guessed bool
}

func (k stratumKey) parent() stratumKey { k.output = 0; return k }

// concurrencyBucket: 1, 2, 3-4, 5-8, 9-16, ... numbered from 0.
func concurrencyBucket(inFlight float64) uint8 {
	n := uint64(max(1, math.Round(inFlight)))
	return uint8(bits.Len64(n - 1))
}

// concurrencyLabel names a bucket: "1", "2", "3-4", "5-8", ...
func concurrencyLabel(bucket uint8) string {
	if bucket < 2 {
		return fmt.Sprint(bucket + 1)
	}
	return fmt.Sprintf("%d-%d", 1<<(bucket-1)+1, 1<<bucket)
}

// keyOf buckets a phase. Decode slows down gently with context: powers of four
// from 1024 tokens. The prefill rate grows with the prompt while the hardware
// is not full: powers of two.
func keyOf(v *phaseView, inFlight float64) stratumKey {
	k := stratumKey{concurrency: concurrencyBucket(inFlight)}
	if v.phase == event.PhasePrefill {
		k.context = uint8(bits.Len(uint(v.context)))
		return k
	}
	if v.context > 1024 {
		k.context = uint8(bits.Len(uint(v.context-1)>>10)+1) / 2
	}
	// Short answers spend a larger part on what is paid once: 8-31, 32-127, ...
	k.output = 1 + uint8(bits.Len(uint(v.output)>>3)+1)/2
	return k
}

// stratum is one population of comparable phases.
type stratum struct {
	key    stratumKey
	window window
	// anchor is the median of the last accepted regime. It never follows the
	// window down, so that a slow decay is not learned. It follows it up: at
	// once while the window fills, later when above counts two windows of
	// samples in a row that kept the median higher, and then to the lowest of
	// those medians. Else a machine whose speed wanders would be held to its
	// best hour for ever.
	anchor float64
	above  int
	lowest float64
	// known once the window held MinSamples: it stays so.
	known    bool
	requests uint64
	usedNS   int64 // event time of the last request of it
	// held are accepted samples since the last slow verdict of the series:
	// learned when the run is long enough, dropped when an episode opens.
	held []sample
	// refs are kept by parents only: what legs took per token.
	refs legReferences
}

// baseline is the rate that r compares with; 0 while there is none.
func (s *stratum) baseline(c *Config) float64 {
	switch {
	case !s.known || s.window.len() == 0:
		return 0
	case s.window.len() < c.MinKeep:
		return s.anchor
	}
	return max(s.window.median(), c.AnchorShare*s.anchor)
}

// anchored says that the anchor holds the baseline, and not the median.
func (s *stratum) anchored(c *Config) bool {
	return s.known && s.window.len() >= c.MinKeep && s.window.median() < c.AnchorShare*s.anchor
}

func (s *stratum) learn(x sample, c *Config) {
	s.window.add(x)
	if !s.known && s.window.len() < c.MinSamples {
		return
	}
	s.known = true
	if s.window.len() >= c.MinKeep {
		s.raiseAnchor(s.window.median())
	}
}

func (s *stratum) raiseAnchor(median float64) {
	switch {
	case median <= s.anchor:
		s.above = 0
	case s.window.len() < s.window.max:
		s.anchor = median
	default:
		if s.above++; s.above == 1 || median < s.lowest {
			s.lowest = median
		}
		if s.above >= 2*s.window.max {
			s.anchor, s.above = s.lowest, 0
		}
	}
}

// freeze drops what the fault may have taught before it was seen: samples that
// ended at sinceNS or later.
func (s *stratum) freeze(sinceNS int64, c *Config) {
	s.held = s.held[:0]
	drop := 0
	for drop < min(c.LookBack, s.window.len()-c.MinKeep) && s.window.at(s.window.len()-1-drop).endNS >= sinceNS {
		drop++
	}
	s.window.dropNewest(drop)
}

// release learns the run of accepted samples that ended a suspicion.
func (s *stratum) release(c *Config) {
	for _, x := range s.held {
		s.learn(x, c)
	}
	s.held = s.held[:0]
}

// hold keeps an accepted sample until it is clear what it belongs to.
func (s *stratum) hold(x sample, c *Config) {
	if len(s.held) >= c.CloseAfter {
		copy(s.held, s.held[1:])
		s.held = s.held[:len(s.held)-1]
	}
	s.held = append(s.held, x)
}

// expire forgets samples older than MaxAge.
func (s *stratum) expire(nowNS int64, maxAge time.Duration) {
	s.window.expire(nowNS - int64(maxAge))
}

// adopt forgets the regime: the next MinSamples requests make a new one.
func (s *stratum) adopt() {
	s.window.clear()
	s.held = s.held[:0]
	s.refs.clear()
	s.anchor, s.above, s.known = 0, 0, false
}

// erodedShare of the anchor: below it the median has decayed, and the anchor
// alone keeps that from becoming the standard.
const erodedShare = 0.8

// eroded says that the regime has decayed slowly: what is accepted is far
// below what once was.
func (s *stratum) eroded(c *Config) bool {
	return s.known && s.window.len() >= c.MinKeep && s.window.median() < erodedShare*s.anchor
}

// state as of oldestNS: samples that ended before it count no longer.
func (s *stratum) state(frozen bool, oldestNS int64) event.BaselineState {
	switch {
	case !s.known:
		return event.BaselineWarming
	case frozen:
		return event.BaselineFrozen
	case s.window.len() == 0 || s.window.at(s.window.len()-1).endNS < oldestNS:
		return event.BaselineStale
	}
	return event.BaselineReady
}

// logSigma is the spread of the log rate, half the distance between the 16th
// and the 84th percentile: outliers do not move it.
func (s *stratum) logSigma() float64 {
	lo, hi := s.window.quantile(0.16), s.window.quantile(0.84)
	if lo <= 0 {
		return 0
	}
	return (math.Log(hi) - math.Log(lo)) / 2
}
