package legs

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"grayfail/event"
)

// Expectations of a leg.
const (
	ExpectAuto = "auto"
	ExpectRDMA = "rdma"
	ExpectTCP  = "tcp"
)

// Static is a configured leg: it has a name and is listed even while nothing
// is connected to the peer.
type Static struct {
	Name   string
	Peer   netip.AddrPort
	Expect string // auto, rdma or tcp; "" is auto
}

// Config of a Table. Zero values mean the defaults.
type Config struct {
	Static []Static
	// Ports are discovered: peer ports make client legs, local ports server
	// legs.
	Ports []uint16
	// Max bounds the legs, default 256; the rest is named bound.Other.
	Max int
	// Settling is how long a connection must have lived, and a silence must
	// have lasted, before anything is concluded from it. Default 2 s: the
	// connections that an engine makes for a moment at its start are gone by
	// then. A program that looks twice and ends can set it to the pause
	// between its looks.
	Settling time.Duration
	// InFlight, if there is one, tells for how long requests have been in flight
	// without a break; 0 while there is none. Where it is not known, a leg is
	// stalled only by what waits unread. It must not call the Table.
	InFlight func(nowNS int64) time.Duration
	// StallAfter is how long nothing must move for a leg to be stalled, default
	// 10 s: a long prompt may take a worker that long.
	StallAfter time.Duration
	// Forget removes a leg that is no longer connected, default 15 min. Static
	// legs stay.
	Forget time.Duration
	// Join, if there is one, is asked after every judgement by TCP. It must
	// not call the Table.
	Join Join
}

// Join settles a leg's transport with facts from beyond TCP (queue pairs, GID
// tables). leg comes as TCP alone describes it; Join may change Transport,
// Reason, RDMADevice, RDMAPort and QueuePairs, and leaves the slice to the leg.
type Join func(nowNS int64, facts Facts, leg *event.Leg)

// Facts are what a leg's transport is concluded from.
type Facts struct {
	Sockets []SocketFacts
}

// SocketFacts is one living socket of a leg.
type SocketFacts struct {
	event.TCPSocket
	// Age is how long it has been established, at least.
	Age time.Duration
	// Settled: it is established and older than Config.Settling. Only these
	// may be judged.
	Settled bool
	// Payload counts bytes that were acknowledged or received.
	Payload uint64
}

// NetnsInfo is one watched namespace, as it stands at an Update.
type NetnsInfo struct {
	Inode uint32
	Name  string // "" is our own
	// Devices maps local addresses to the netdev that holds them; nil where
	// they could not be read.
	Devices map[netip.Addr]string
	// Unread: its sockets could not all be read this time, so a missing socket
	// says nothing.
	Unread bool
}

func withDefaults(cfg Config) Config {
	cfg.Max = cmp.Or(cfg.Max, 256)
	cfg.Settling = cmp.Or(cfg.Settling, 2*time.Second)
	cfg.StallAfter = cmp.Or(cfg.StallAfter, 10*time.Second)
	cfg.Forget = cmp.Or(cfg.Forget, 15*time.Minute)
	cfg.Static = slices.Clone(cfg.Static)
	for i := range cfg.Static {
		s := &cfg.Static[i]
		s.Peer = netip.AddrPortFrom(s.Peer.Addr().Unmap(), s.Peer.Port())
		s.Expect = cmp.Or(s.Expect, ExpectAuto)
	}
	return cfg
}

// WatchedPorts are the ports whose sockets the table wants to be told of:
// discovered ones and those of static legs. What was found is beside them.
func (c Config) WatchedPorts() []uint16 {
	ports := slices.Clone(c.Ports)
	for _, s := range c.Static {
		ports = append(ports, s.Peer.Port())
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}
