// Package cost is what the exporter costs beside what people run already: how
// it is written down.
//
// In: Sections, each measured in one run, and the output of `go test -bench`.
// Out: docs/cost.md and its plots. Pure; what measures is lab/cost/measure.
package cost
