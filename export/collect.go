package export

import (
	"hash/maphash"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/version"

	"grayfail/event"
)

// snapshotCollector gives the metrics of the last published snapshot. It is
// Metrics under another name, so that Describe and Collect stay out of its
// method set.
type snapshotCollector Metrics

// Describe sends every metric that is not fed by events.
func (c *snapshotCollector) Describe(ch chan<- *prometheus.Desc) {
	for id, d := range c.descs {
		if !eventFed(metric(id)) {
			ch <- d
		}
	}
}

// Collect may run any number of times at once; it waits for no sampling.
func (c *snapshotCollector) Collect(ch chan<- prometheus.Metric) {
	m := (*Metrics)(c)
	var fromProducers uint64
	if v := m.view.Load(); v != nil {
		v.build.Do(func() { v.metrics = m.series(v) })
		for _, metric := range v.metrics {
			ch <- metric
		}
		fromProducers = v.snapshot.SeriesOverflow
	}
	ch <- prometheus.MustNewConstMetric(m.descs[seriesOverflow], prometheus.CounterValue,
		float64(m.seriesOverflowed()+fromProducers))
	ch <- prometheus.MustNewConstMetric(m.descs[buildInfo], prometheus.GaugeValue, 1,
		version.Version, version.GetRevision(), version.Branch, version.GoVersion,
		version.GoOS, version.GoArch, version.GetTags())
}

// series builds every metric of a snapshot.
func (m *Metrics) series(v *view) []prometheus.Metric {
	b := &builder{m: m, seed: maphash.MakeSeed(), seen: make(map[seriesKey]struct{})}
	b.qdiscs(v.snapshot.Qdiscs)
	b.legs(v.legs)
	b.hosts(v.snapshot.HostAddresses)
	b.rdma(v.snapshot.RDMA)
	b.inFlight(v.snapshot.InFlight)
	b.baselines(v.snapshot.Baselines)
	b.episodes(v.phases, v.snapshot.Episodes)
	b.correlations(v.snapshot.Correlations)
	b.intake(v.snapshot.Intake)
	b.detector(&v.snapshot.Detector)
	b.collectors(v.snapshot.Statuses)
	b.reload(v.snapshot.ConfigReload)
	return b.out
}

// builder turns samples into metrics. A series that comes twice would fail the
// whole scrape, so the second is left out and counted, as is what goes beyond
// the bound of one metric.
type builder struct {
	m     *Metrics
	out   []prometheus.Metric
	seed  maphash.Seed
	seen  map[seriesKey]struct{}
	count [numMetrics]int
}

// seriesKey tells series apart by a 64 bit hash of their labels, as the
// registry itself does.
type seriesKey struct {
	id     metric
	labels uint64
}

func (b *builder) gauge(id metric, v float64, labels ...string) {
	b.put(id, v, b.labels(id, labels))
}

func (b *builder) counter(id metric, v uint64, labels ...string) {
	b.put(id, float64(v), b.labels(id, labels))
}

// labels makes a label set for a metric, and for all others that have the same
// label names.
func (b *builder) labels(id metric, values []string) labelSet {
	var h maphash.Hash
	h.SetSeed(b.seed)
	for i := range values {
		values[i] = label(values[i])
		h.WriteString(values[i])
		h.WriteByte(0xff) // in no UTF-8 text
	}
	return labelSet{prometheus.MakeLabelPairs(b.m.descs[id], values), h.Sum64()}
}

func (b *builder) put(id metric, v float64, labels labelSet) {
	key := seriesKey{id, labels.hash}
	if _, twice := b.seen[key]; twice || b.count[id] >= maxSeries {
		b.m.overflow.Add(1)
		return
	}
	b.seen[key] = struct{}{}
	b.count[id]++
	b.out = append(b.out, series{b.m.descs[id], b.m.types[id], v, labels.pairs})
}

// oneHot gives 1 to the value that holds and 0 to all others.
func oneHot[T comparable](b *builder, id metric, all []T, is T, labels func(T) []string) {
	for _, v := range all {
		b.gauge(id, boolean(v == is), labels(v)...)
	}
}

func boolean(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

func (b *builder) qdiscs(qdiscs []event.Qdisc) {
	for i := range qdiscs {
		q := &qdiscs[i]
		labels := b.labels(qdiscBytes, []string{q.Netns, q.Device, q.Kind, q.Handle, q.Parent})
		b.put(qdiscBytes, float64(q.Bytes), labels)
		b.put(qdiscPackets, float64(q.Packets), labels)
		b.put(qdiscDrops, float64(q.Drops), labels)
		b.put(qdiscRequeues, float64(q.Requeues), labels)
		b.put(qdiscOverlimits, float64(q.Overlimits), labels)
		b.put(qdiscBacklog, float64(q.BacklogBytes), labels)
		b.put(qdiscQueue, float64(q.QueuePackets), labels)
	}
}
