// Package measure runs the comparisons behind docs/cost.md: the exporter and
// what people run already, side by side in a network namespace of its own.
//
// In: binaries, and root. Out: cost.Sections.
package measure
