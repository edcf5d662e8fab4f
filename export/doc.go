// Package export tells the world what was measured and judged: Prometheus
// metrics, log lines, the JSON API and the page at /.
//
// In: single events (exchanges, retransmits, requests, rows, episodes) as they
// happen, and an immutable event.Snapshot at every sampling tick.
// Out: metrics in the caller's registry, zerolog lines, http.Handlers.
//
// Nothing here samples or judges. A scrape reads the last published snapshot
// and never waits for the next one. Every name that outsiders choose is
// cleaned and bounded on its way in: what does not fit is counted under
// "other" and in series_overflow_total.
package export
