package lab

import (
	"fmt"
	"net/netip"
	"regexp"
)

// namePrefix starts the name of everything that is visible machine-wide.
const namePrefix = "gf-lab-"

// instancePattern keeps instance names short enough to read and free of the
// separator, so that no instance's prefix is another's.
var instancePattern = regexp.MustCompile(`^[a-z0-9]{1,8}$`)

// Leg names, as the exporter's configuration gives them.
const (
	LegA = "rpc-a"
	LegB = "rpc-b"
)

// Ports inside the namespaces: every instance has its own, so they never clash.
const (
	RPCPort    = 50052 // llama.cpp's default
	EnginePort = 8080
	ProxyPort  = 8081
)

// Congestion is the congestion control of the legs' connections: the kernel's
// usual default. The figures depend on it.
const Congestion = "cubic"

// Link is one coordinator-worker pair of interfaces.
type Link struct {
	Leg string
	// CoordinatorDevice and WorkerDevice are interface names, each in its own
	// namespace: nothing appears in the host's.
	CoordinatorDevice, WorkerDevice string
	CoordinatorAddr, WorkerAddr     netip.Prefix
	// Worker is the worker's network namespace.
	Worker Namespace
}

// Peer is the address of the worker's RPC port.
func (l Link) Peer() netip.AddrPort { return netip.AddrPortFrom(l.WorkerAddr.Addr(), RPCPort) }

func coordinatorNamespace(instance string) Namespace {
	return Namespace(namePrefix + instance + "-c")
}

// links are the two legs: 10.77.1.0/30 and 10.77.2.0/30, worker at .2.
func links(instance string) []Link {
	var out []Link
	for i, leg := range []string{LegA, LegB} {
		net := byte(i + 1)
		out = append(out, Link{
			Leg:               leg,
			CoordinatorDevice: "to-" + leg,
			WorkerDevice:      "eth0",
			CoordinatorAddr:   netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, net, 1}), 30),
			WorkerAddr:        netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, net, 2}), 30),
			Worker:            Namespace(fmt.Sprintf("%s%s-%s", namePrefix, instance, leg[len("rpc-"):])),
		})
	}
	return out
}

// namespaces lists every namespace an instance can own.
func namespaces(instance string) []Namespace {
	all := []Namespace{coordinatorNamespace(instance)}
	for _, l := range links(instance) {
		all = append(all, l.Worker)
	}
	return all
}
