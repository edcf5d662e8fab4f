// Package replay runs the detector over recorded events.
//
// In: recordings (JSON lines, plain or gzip) through functions that open them.
// Out: the object that "replay --json" prints, and the lines that could not be
// read, with their numbers.
//
// A recording is read twice: first its requests alone, for how many were in
// flight where the source did not say, then all events in the order of the
// file, in which event time is the clock. Nothing is kept that grows with the
// file, except one row for each phase of a request.
package replay
