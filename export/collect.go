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
	b.inFlight(v.snapshot.InFlight)
	b.baselines(v.snapshot.Baselines)
	b.episodes(v.phases, v.snapshot.Episodes)
	b.correlations(v.snapshot.Correlations)
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
	b.add(id, prometheus.GaugeValue, v, labels)
}

func (b *builder) counter(id metric, v uint64, labels ...string) {
	b.add(id, prometheus.CounterValue, float64(v), labels)
}

func (b *builder) add(id metric, kind prometheus.ValueType, v float64, labels []string) {
	var h maphash.Hash
	h.SetSeed(b.seed)
	for i := range labels {
		labels[i] = label(labels[i])
		h.WriteString(labels[i])
		h.WriteByte(0xff) // in no UTF-8 text
	}
	key := seriesKey{id, h.Sum64()}
	if _, twice := b.seen[key]; twice || b.count[id] >= maxSeries {
		b.m.overflow.Add(1)
		return
	}
	metric, err := prometheus.NewConstMetric(b.m.descs[id], kind, v, labels...)
	if err != nil { // a wrong number of labels: every test would show it
		b.m.overflow.Add(1)
		return
	}
	b.seen[key] = struct{}{}
	b.count[id]++
	b.out = append(b.out, metric)
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
		for _, c := range []struct {
			id metric
			v  uint64
		}{
			{qdiscBytes, q.Bytes}, {qdiscPackets, q.Packets}, {qdiscDrops, q.Drops},
			{qdiscRequeues, q.Requeues}, {qdiscOverlimits, q.Overlimits},
		} {
			b.counter(c.id, c.v, q.Netns, q.Device, q.Kind, q.Handle, q.Parent)
		}
		b.gauge(qdiscBacklog, float64(q.BacklogBytes), q.Netns, q.Device, q.Kind, q.Handle, q.Parent)
		b.gauge(qdiscQueue, float64(q.QueuePackets), q.Netns, q.Device, q.Kind, q.Handle, q.Parent)
	}
}
