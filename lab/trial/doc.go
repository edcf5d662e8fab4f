// Package trial measures the exporter on a lab cluster.
//
// In: a running lab.Cluster, the exporter's binary, a plan of conditions. Out:
// every request with what the engine said of its speed and what the exporter
// said of its cause.
package trial
