// Package alerts holds the Prometheus rules, their unit tests, a runbook for
// each alert and an example configuration of Alertmanager.
//
// In: the metrics of the exporter, by their contract. Out: grayfail.rules.yml.
// There is no code: the tests run promtool, amtool and a real Alertmanager on
// the files, hold the rules to the table of metrics in export, and break a lab
// cluster to see the alerts come and go at a webhook.
package alerts
