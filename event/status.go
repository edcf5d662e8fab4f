package event

import "time"

// Availability tells absence, lack of support and failure apart.
type Availability uint8

const (
	NotTried    Availability = iota // no attempt has finished yet
	Up                              // working
	Degraded                        // working, with something missing: see Problems
	Unsupported                     // this kernel or build has no such thing
	Failed                          // it should work and does not
)

// Problem is one thing a collector cannot do.
type Problem struct {
	// Reason is a short stable word for the label: no_permission,
	// not_supported, no_btf, ...
	Reason string
	// Detail is for people: what failed, the error, what to do about it.
	Detail string
}

// Status is what a collector says of itself after its last try.
type Status struct {
	Collector    string // qdisc, tcp_events, tcp_sockets, rdma, requests, state
	Availability Availability
	Problems     []Problem
	Duration     time.Duration // of the last try
	Errors       uint64        // failed tries since the start
	Lost         uint64        // events the kernel could not hand over
}
