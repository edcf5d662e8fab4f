package detector

import "time"

// Config holds every threshold of the detector. DefaultConfig gives starting
// points that the evaluation decided on; zero fields mean those.
type Config struct {
	// The rule: a phase is slow iff its rate is below Threshold x baseline.
	Threshold float64
	// MinSamples is how many accepted samples make a baseline ready, Window
	// and MaxAge what it remembers.
	MinSamples int
	Window     int
	MaxAge     time.Duration
	// Hold is how long a verdict waits for late neighbours and exchanges.
	Hold time.Duration

	// A phase with fewer tokens has no verdict.
	MinDecodeTokens, MinPrefillTokens int

	// LookBack samples learned just before an episode are dropped, but never
	// so that fewer than MinKeep stay.
	LookBack, MinKeep int
	// AnchorShare of the last accepted regime is the least a baseline falls to.
	AnchorShare float64

	// An episode opens at OpenSlow slow verdicts among OpenWithin, and closes
	// after CloseAfter verdicts in a row that are ok.
	OpenSlow, OpenWithin, CloseAfter int

	Cause CauseConfig

	// RecordSpan is how long exchanges are kept one by one, SumSpan how long
	// as sums of SumSlot beyond that: the longest request that can be explained.
	RecordSpan, SumSpan time.Duration
	// Bounds of the tables. What does not fit is counted, see Stats.
	MaxModels, MaxLegs, MaxStrata, MaxRecords, MaxPending int

	// CorrelateOver is the number of newest requests of a model in the rank
	// correlation, Permutations and Seed make its p-value.
	CorrelateOver, Permutations int
	Seed                        uint64
	// Verbose fills in Output.Requests and Output.Scores, for replay.
	Verbose bool
}

// CauseConfig holds the thresholds of section "cause": shares are of the
// phase's excess time, or of the leg's where the name says Leg.
type CauseConfig struct {
	// LocalShare of the excess on no leg: the cause is local.
	LocalShare float64
	// ExamineShare of the excess on a leg: its witnesses are heard.
	ExamineShare float64
	// LegShare of a leg's excess shown by one witness makes it the cause.
	LegShare float64
	// NameShare of the excess must be on the leg to name its host, or to name
	// it for loss or delay while a second leg is late too.
	NameShare float64
	// SecondShare of the first leg's excess on a second one: a common cause.
	SecondShare float64
	// HostRest is how much of the first leg's slowdown (excess over what is
	// usual there) all else may show before its host is not to blame alone.
	HostRest float64
	// RTOGap is the shortest silence that a retransmission timeout makes:
	// TCP_RTO_MIN is 200 ms (include/net/tcp.h), less a tick and a half.
	RTOGap time.Duration
	// LateFloor is the least that counts as late for a single exchange.
	LateFloor time.Duration
	// EvenGap is the largest share of a reply's time that its largest gap may
	// take for the reply to count as evenly slow (a rate limit).
	EvenGap float64
	// DeadAfter is the limit for one exchange.
	DeadAfter time.Duration
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Threshold: 0.5, MinSamples: 10, Window: 256, MaxAge: 6 * time.Hour, Hold: 2 * time.Second,
		MinDecodeTokens: 8, MinPrefillTokens: 64,
		LookBack: 3, MinKeep: 5, AnchorShare: 0.9,
		OpenSlow: 3, OpenWithin: 10, CloseAfter: 10,
		Cause: CauseConfig{
			LocalShare: 0.6, ExamineShare: 0.25, LegShare: 0.5, NameShare: 0.5, SecondShare: 0.5, HostRest: 0.3,
			RTOGap: 190 * time.Millisecond, LateFloor: time.Millisecond,
			EvenGap: 0.75, DeadAfter: 10 * time.Second,
		},
		RecordSpan: 15 * time.Second, SumSpan: 10 * time.Minute,
		MaxModels: 64, MaxLegs: 256, MaxStrata: 1024, MaxRecords: 1 << 17, MaxPending: 100_000,
		CorrelateOver: 64, Permutations: 999, Seed: 1,
	}
}

// withDefaults fills in zero fields.
func (c Config) withDefaults() Config {
	d := DefaultConfig()
	fill(&c.Threshold, d.Threshold)
	fill(&c.MinSamples, d.MinSamples)
	fill(&c.Window, d.Window)
	fill(&c.MaxAge, d.MaxAge)
	fill(&c.Hold, d.Hold)
	fill(&c.MinDecodeTokens, d.MinDecodeTokens)
	fill(&c.MinPrefillTokens, d.MinPrefillTokens)
	fill(&c.LookBack, d.LookBack)
	fill(&c.MinKeep, d.MinKeep)
	fill(&c.AnchorShare, d.AnchorShare)
	fill(&c.OpenSlow, d.OpenSlow)
	fill(&c.OpenWithin, d.OpenWithin)
	fill(&c.CloseAfter, d.CloseAfter)
	fill(&c.Cause.LocalShare, d.Cause.LocalShare)
	fill(&c.Cause.ExamineShare, d.Cause.ExamineShare)
	fill(&c.Cause.LegShare, d.Cause.LegShare)
	fill(&c.Cause.NameShare, d.Cause.NameShare)
	fill(&c.Cause.SecondShare, d.Cause.SecondShare)
	fill(&c.Cause.HostRest, d.Cause.HostRest)
	fill(&c.Cause.RTOGap, d.Cause.RTOGap)
	fill(&c.Cause.LateFloor, d.Cause.LateFloor)
	fill(&c.Cause.EvenGap, d.Cause.EvenGap)
	fill(&c.Cause.DeadAfter, d.Cause.DeadAfter)
	fill(&c.RecordSpan, d.RecordSpan)
	fill(&c.SumSpan, d.SumSpan)
	fill(&c.MaxModels, d.MaxModels)
	fill(&c.MaxLegs, d.MaxLegs)
	fill(&c.MaxStrata, d.MaxStrata)
	fill(&c.MaxRecords, d.MaxRecords)
	fill(&c.MaxPending, d.MaxPending)
	fill(&c.CorrelateOver, d.CorrelateOver)
	fill(&c.Permutations, d.Permutations)
	fill(&c.Seed, d.Seed)
	c.Window = max(c.Window, c.MinSamples)
	return c
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
