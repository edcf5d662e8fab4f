// Package detector says which requests were slow, which leg ate their time
// and how sure that is.
//
// In: events in event time, in any order within Config.Hold: requests,
// exchanges, retransmits, connections, qdisc readings, changes of legs.
// Out: one event.Row per request and phase, episodes, baselines, correlations.
//
// The package is pure: no clock, no I/O, no goroutine, no global state. The
// same events give the same answers, live and on replay. It is not safe for
// concurrent use.
//
// The way of a request: it waits in the queue until its neighbours are known
// (queue.go), each phase gets its rate (phase.go) and is compared with the
// baseline of its stratum (stratum.go, window.go), a slow one has its lost time
// split over the legs (ledger.go, occupancy.go) against what accepted requests
// needed there (reference.go), the witnesses of those legs are heard
// (witness.go), and the cause is named or withheld (cause.go). Runs of slow
// verdicts are episodes (episode.go); while one is open nothing is learned.
//
// What was learned survives a restart (state_save.go, state_restore.go), a clock
// that is set (clock.go, rebase.go) and a new build of the engine, which has
// baselines of its own (fingerprint.go).
package detector
