package legs

import (
	"net/netip"
	"slices"
	"time"

	"grayfail/event"
)

// Found names legs by address: what processes here connected to (Peers), and
// what peers connected to here (Locals).
type Found struct {
	Peers, Locals map[netip.AddrPort]bool
	// Named are the ports of what was found by the name of its process: their
	// exchanges are worth clocking. What NCCL streams has none.
	Named []uint16
}

// Ports are those of everything that was found, sorted.
func (f Found) Ports() []uint16 {
	var ports []uint16
	for a := range f.Peers {
		ports = append(ports, a.Port())
	}
	for a := range f.Locals {
		ports = append(ports, a.Port())
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// FinderConfig says what makes a leg of a connection whose port nobody named.
type FinderConfig struct {
	// Processes are names as in /proc/PID/comm; what these connected to is a
	// leg.
	Processes []string
	// RDMAAddresses: payload between two ports that the kernel chose, at a local
	// address that is a GID. NCCL and UCX connect so; services have a port that
	// somebody chose, and what they carry was never meant for RDMA.
	RDMAAddresses bool
	// ChosenPorts is the kernel's range of ports, net.ipv4.ip_local_port_range;
	// default 32768 to 60999.
	ChosenPorts [2]uint16
	// Max bounds what is kept, default 128. Keep is how long after its last
	// connection, default 15 min.
	Max  int
	Keep time.Duration
}

// Finder finds legs among all connections of a host. Not safe for concurrent
// use.
type Finder struct {
	cfg      FinderConfig
	peers    map[netip.AddrPort]sighting
	locals   map[netip.AddrPort]sighting
	overflow uint64
}

// sighting is when something was last connected.
type sighting struct {
	seenNS int64
	named  bool
}

// NewFinder returns a Finder that has found nothing.
func NewFinder(cfg FinderConfig) *Finder {
	f := &Finder{peers: make(map[netip.AddrPort]sighting), locals: make(map[netip.AddrPort]sighting)}
	f.SetConfig(cfg)
	return f
}

// maxComm is how much of a process name the kernel keeps (TASK_COMM_LEN less
// the terminating zero, include/linux/sched.h).
const maxComm = 15

// SetConfig replaces the configuration, and forgets what was found if it is
// another one.
func (f *Finder) SetConfig(cfg FinderConfig) {
	if cfg.ChosenPorts == [2]uint16{} {
		cfg.ChosenPorts = [2]uint16{32768, 60999}
	}
	if cfg.Max == 0 {
		cfg.Max = 128
	}
	if cfg.Keep == 0 {
		cfg.Keep = 15 * time.Minute
	}
	cfg.Processes = slices.Clone(cfg.Processes)
	for i, name := range cfg.Processes {
		cfg.Processes[i] = name[:min(len(name), maxComm)]
	}
	if !slices.Equal(cfg.Processes, f.cfg.Processes) || cfg.RDMAAddresses != f.cfg.RDMAAddresses {
		clear(f.peers)
		clear(f.locals)
	}
	f.cfg = cfg
}

// Wants says what has to be looked at: all connections, and whether their
// owners have to be known.
func (f *Finder) Wants(gids map[netip.Addr]bool) (connections, owners bool) {
	owners = len(f.cfg.Processes) > 0
	return owners || f.cfg.RDMAAddresses && len(gids) > 0, owners
}

// Look takes all established connections of the watched namespaces with their
// roles, and the addresses that are GIDs of this host.
func (f *Finder) Look(nowNS int64, sockets []event.TCPSocket, gids map[netip.Addr]bool) Found {
	for _, known := range []map[netip.AddrPort]sighting{f.peers, f.locals} {
		for at, was := range known {
			if nowNS-was.seenNS >= int64(f.cfg.Keep) {
				delete(known, at)
			}
		}
	}
	for i := range sockets {
		s := &sockets[i]
		byProcess := s.Flow.Role == event.RoleClient && slices.Contains(f.cfg.Processes, s.Flow.Comm)
		byAddress := f.cfg.RDMAAddresses && gids[s.Flow.Local.Addr().WithZone("")] && payload(s) > handshakeBytes &&
			f.chosen(s.Flow.Local.Port()) && f.chosen(s.Flow.Peer.Port())
		known, at := f.peers, s.Flow.Peer
		if s.Flow.Role == event.RoleServer {
			known, at = f.locals, s.Flow.Local
		}
		was, have := known[at]
		if !have && !byProcess && !byAddress {
			continue
		}
		if !have && len(f.peers)+len(f.locals) >= f.cfg.Max {
			f.overflow++
			continue
		}
		known[at] = sighting{nowNS, was.named || byProcess}
	}
	out := Found{Peers: make(map[netip.AddrPort]bool, len(f.peers)), Locals: make(map[netip.AddrPort]bool, len(f.locals))}
	for at, s := range f.peers {
		out.Peers[at] = true
		if s.named {
			out.Named = append(out.Named, at.Port())
		}
	}
	slices.Sort(out.Named)
	out.Named = slices.Compact(out.Named)
	for at := range f.locals {
		out.Locals[at] = true
	}
	return out
}

// Overflow counts the connections that did not fit.
func (f *Finder) Overflow() uint64 { return f.overflow }

func (f *Finder) chosen(port uint16) bool {
	return port >= f.cfg.ChosenPorts[0] && port <= f.cfg.ChosenPorts[1]
}

// SetFound says which legs there are beside those of the configuration. One
// that is no longer among them stays until Config.Forget.
func (t *Table) SetFound(f Found) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found = f
}
