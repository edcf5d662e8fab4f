// Package dashboards holds the Grafana dashboards of the exporter.
//
// In: the metrics of the exporter, by their contract. Out: JSON files, made by
// the module in generate. There is no code here but tests: conventions that
// every panel keeps, queries that Prometheus can parse, and queries that
// return data when a real Prometheus scrapes a real exporter.
package dashboards
