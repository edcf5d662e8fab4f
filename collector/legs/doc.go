// Package legs keeps the table of legs: the ways from this host to its peers.
//
// In: the sockets that sockdiag read, the namespaces with their addresses, the
// failed connections that ebpf saw, and the configuration. Out: the name of
// the leg a flow belongs to (called for every exchange), event.Leg values as
// they stand now, and event.LegChange values.
//
// One leg is one peer address and port seen from one network namespace. Its
// transport is concluded here as far as TCP tells (judge.go); what RDMA tells
// is joined in by Config.Join. Time is what callers pass in: the table has no
// clock, and it opens nothing but for AddressReader.
package legs
