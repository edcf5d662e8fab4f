package export

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// namespace is the prefix of every metric.
const namespace = "grayfail_"

// Type of a metric, spelled as the exposition format spells it.
type Type string

// The types in use.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram" // classic buckets and native in one
)

// Description is everything that is fixed about one metric; a reference of
// the metrics can be generated from the table of them.
type Description struct {
	Name    string // with prefix
	Help    string
	Type    Type
	Labels  []string  // in the order in which values are given
	Buckets []float64 // upper bounds of the classic buckets, histograms only
}

// Descriptions lists every metric in the order of the reference. With strata,
// baseline metrics carry one label more: see Options.Strata.
func Descriptions(strata bool) []Description {
	table := describe(strata)
	return slices.Clone(table[:])
}

// metric is an index into the table of descriptions.
type metric int

func (d *Description) desc() *prometheus.Desc {
	return prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
}

func (d *Description) counters() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels)
}

// histograms keep classic buckets for every Prometheus and a native histogram
// (resolution 10%) for those that ask for it. The number of native buckets is
// bounded: beyond it the resolution is halved, hourly at most.
func (d *Description) histograms() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: d.Name, Help: d.Help, Buckets: d.Buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: nativeReset,
	}, d.Labels)
}
