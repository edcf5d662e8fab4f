// Package lab runs a real distributed inference cluster on one machine, and
// breaks it on purpose.
//
// In: Options, llama.cpp as Debian packages it, root. Out: a Cluster of a
// coordinator and two RPC workers, each in a network namespace of its own,
// injectors that prove that they acted, and the answers to requests.
//
// Nothing outlives a Cluster: children die with the process that started them
// (PR_SET_PDEATHSIG), mounts live in the children's own mount namespaces, rules
// and queueing disciplines live in the network namespaces, and what a SIGKILL
// of the owner leaves behind (names of namespaces, a state file) the next Start
// of the same instance removes.
package lab
