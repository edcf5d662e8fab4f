package export

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grayfail/event"
	"grayfail/internal/bound"
)

// Options of Metrics.
type Options struct {
	// Registerer takes the metrics; needed. There is no default registry here.
	Registerer prometheus.Registerer
	// Strata exports every stratum of a baseline: all baseline_* metrics then
	// carry a label concurrency (the bucket), always, so that the label set of
	// a metric is the same for all its series. Without it they carry none and
	// show each model's busiest stratum.
	Strata bool
	// MaxLegs, MaxModels and MaxSources bound the names that get series of
	// their own: 256, 64 and 16 where 0.
	MaxLegs, MaxModels, MaxSources int
	// ForgetAfter is for how long a leg may be in no snapshot and have no
	// event before its series are deleted, by the clock of the snapshots: one
	// hour where 0. It is long on purpose: a collector that fails for a minute
	// must not reset counters.
	ForgetAfter time.Duration
}

// Bounds beside those of names in Options: (source, model) pairs, upstreams
// (configured, but a reload may bring new ones), series of the excess
// counter, and series a metric may have in one snapshot.
const (
	maxPairs        = 128
	maxUpstreams    = 64
	maxExcessSeries = 4096
	maxSeries       = 8192
)

// Metrics keeps every metric. All methods are safe for concurrent use; those
// that take kernel events do not allocate once a leg is known.
type Metrics struct {
	strata      bool
	forgetAfter int64 // nanoseconds

	descs [numMetrics]*prometheus.Desc
	types [numMetrics]Type

	// Fed by events as they happen.
	outcomes, verdicts, excess, episodes, retransmits *prometheus.CounterVec
	rate, normalized, duration, firstToken            *prometheus.HistogramVec
	httpStage, connection, exchange, stall            *prometheus.HistogramVec

	legs      legTable
	pairs     pairTable
	upstreams *bound.Names

	retransmitSeen atomic.Bool // any leg has had a retransmit event

	// overflow counts here and in the tables what did not fit.
	overflow atomic.Uint64

	publish sync.Mutex // one Publish at a time
	view    atomic.Pointer[view]
}

// New makes the metrics and registers them.
func New(o Options) (*Metrics, error) {
	if o.Registerer == nil {
		return nil, fmt.Errorf("export: no registerer given")
	}
	m := &Metrics{
		strata:      o.Strata,
		forgetAfter: int64(orDefault(o.ForgetAfter, time.Hour)),
	}
	table := describe(o.Strata)
	for i := range table {
		m.descs[i], m.types[i] = table[i].desc(), table[i].Type
	}
	m.outcomes = table[requestsTotal].counters()
	m.verdicts = table[requestVerdicts].counters()
	m.excess = table[slowExcess].counters()
	m.episodes = table[episodesTotal].counters()
	m.retransmits = table[tcpRetransmits].counters()
	m.rate = table[requestRate].histograms()
	m.normalized = table[requestNormalizedRate].histograms()
	m.duration = table[requestDuration].histograms()
	m.firstToken = table[requestFirstToken].histograms()
	m.httpStage = table[requestHTTPStage].histograms()
	m.connection = table[tcpConnectionDuration].histograms()
	m.exchange = table[tcpExchange].histograms()
	m.stall = table[tcpExchangeStall].histograms()

	m.legs.init(m, orDefault(o.MaxLegs, 256))
	m.pairs.init(m,
		bound.New(orDefault(o.MaxSources, 16)),
		bound.New(orDefault(o.MaxModels, 64)))
	m.upstreams = bound.New(maxUpstreams)

	for _, c := range []prometheus.Collector{
		m.outcomes, m.verdicts, m.excess, m.episodes, m.retransmits,
		m.rate, m.normalized, m.duration, m.firstToken,
		m.httpStage, m.connection, m.exchange, m.stall,
		(*snapshotCollector)(m),
	} {
		if err := o.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("export: register metrics: %w", err)
		}
	}
	return m, nil
}

// eventFed says which metrics the snapshot collector does not describe.
func eventFed(id metric) bool {
	switch id {
	case requestsTotal, requestVerdicts, slowExcess, episodesTotal, tcpRetransmits,
		requestRate, requestNormalizedRate, requestDuration, requestFirstToken, requestHTTPStage,
		tcpConnectionDuration, tcpExchange, tcpExchangeStall:
		return true
	}
	return false
}

// seriesOverflowed is the value of series_overflow_total without what the
// producers of the snapshot counted.
func (m *Metrics) seriesOverflowed() uint64 {
	return m.overflow.Load() + m.pairs.overflow() + m.upstreams.Overflow()
}

// EpisodeOpened counts an episode under the cause known when it opens: one that
// never closes must not be missing. Which are open is taken from the snapshots.
func (m *Metrics) EpisodeOpened(e event.Episode) {
	p := m.pairs.get(e.Source, e.Model)
	m.episodes.WithLabelValues(p.source, p.model, string(knownCause(e.Cause))).Inc()
}

func orDefault[T int | time.Duration](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}
