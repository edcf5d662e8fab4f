// Package event holds the values that cross package borders.
//
// In: nothing; every producer (collector/..., ebpf) fills these types.
// Out: the detector and the export packages read them.
//
// Data flows one way: collector and ebpf -> event -> detector -> export, so
// this package imports the standard library only. Times are Unix nanoseconds
// (int64, suffix NS); spans are time.Duration; sizes are bytes; rates are
// tokens per second. Absence is never zero: where a zero could be a reading,
// a state or a pointer says whether there was one.
package event
