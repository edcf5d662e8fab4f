// Package scenario makes timelines with known truth for the detector.
//
// In: recordings of the real engine, of which it takes the times of single
// exchanges, and a seed. Out: events as the exporter would have fed them, and
// for each request how fast it was against how fast the same request would
// have been without noise and fault.
//
// What is drawn from recordings: the exchanges of a token on each leg (sizes,
// duration, first byte, ACK, gap, RTT), the time on no leg, and the marks that
// lost reply packets leave. What is a model, with the reason beside the
// constant: how speed depends on concurrency and context, the slow part of the
// noise, and the faults that no recording holds.
package scenario
