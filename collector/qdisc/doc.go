// Package qdisc reads the counters of every queueing discipline.
//
// In: an RTM_GETQDISC dump of rtnetlink in each namespace, with the names of
// its interfaces (RTM_GETLINK). Out: event.Qdisc values, one for every qdisc:
// roots, children, the default leaves that `tc qdisc show` hides, ingress and
// clsact. Needs no capability in the own namespace.
//
// parse.go turns bytes into values and opens nothing; collect_linux.go opens
// sockets and parses nothing.
package qdisc
