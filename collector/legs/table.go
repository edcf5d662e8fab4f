package legs

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"grayfail/event"
	"grayfail/internal/bound"
)

// Table is the table of legs. Safe for concurrent use.
type Table struct {
	mu     sync.RWMutex
	cfg    Config
	ports  map[uint16]bool
	static map[netip.AddrPort]*Static
	found  Found

	legs    map[id]*leg
	unbound map[netip.AddrPort]*leg // static legs that no namespace has yet
	names   map[string]*leg
	// flows remembers which leg a flow belongs to, so that naming one is a
	// look-up. A nil leg did not fit.
	flows map[flowKey]*leg
	// netns names the inodes of the last update.
	netns      map[uint32]string
	addresses  []netip.Addr
	generation uint64
	nowNS      int64

	overflow atomic.Uint64
}

// flowKey is the part of an event.Flow that decides its leg.
type flowKey struct {
	inode uint32
	role  event.Role
	peer  netip.AddrPort
}

func keyOf(f *event.Flow) flowKey {
	k := flowKey{f.NetnsInode, f.Role, f.Peer}
	if f.Role == event.RoleServer {
		k.peer = netip.AddrPortFrom(f.Peer.Addr(), 0)
	}
	return k
}

// New returns a table that holds the static legs.
func New(cfg Config) *Table {
	t := &Table{
		legs:    make(map[id]*leg),
		unbound: make(map[netip.AddrPort]*leg),
		names:   make(map[string]*leg),
		flows:   make(map[flowKey]*leg),
		netns:   make(map[uint32]string),
	}
	t.SetConfig(cfg)
	return t
}

// Name is the name of the leg a flow belongs to: the static name, else
// "ip:port" of the peer; "from ip" for a server's; bound.Other when the table
// is full, which is counted; "" when no leg has such a flow by configuration.
// A flow of a leg not seen yet makes the leg. A name stays with its leg until
// the configuration changes.
func (t *Table) Name(f event.Flow) string {
	k := keyOf(&f)
	t.mu.RLock()
	l, known := t.flows[k]
	if known && l != nil {
		name := l.name
		if !l.used.Load() {
			l.used.Store(true)
		}
		t.mu.RUnlock()
		return name
	}
	t.mu.RUnlock()
	if known {
		t.overflow.Add(1)
		return bound.Other
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isLeg(&f) {
		return ""
	}
	l = t.admit(k)
	if l == nil {
		t.overflow.Add(1)
		return bound.Other
	}
	l.used.Store(true)
	return l.name
}

// isLeg says whether the configuration makes a leg of such a flow.
func (t *Table) isLeg(f *event.Flow) bool {
	if f.Role == event.RoleServer {
		return t.ports[f.Local.Port()] || t.found.Locals[f.Local]
	}
	return t.ports[f.Peer.Port()] || t.static[f.Peer] != nil || t.found.Peers[f.Peer]
}

// admit finds the leg of a flow, or makes it; nil when the table is full.
func (t *Table) admit(k flowKey) *leg {
	if l, known := t.flows[k]; known {
		return l
	}
	want := id{t.netnsName(k.inode), k.role, k.peer}
	l := t.legs[want]
	if l == nil {
		l = t.adopt(want)
	}
	if l == nil && len(t.names) < t.cfg.Max {
		l = t.create(want)
	}
	// Flows without a leg are remembered too, and leave room for the others.
	if room := 4*t.cfg.Max - len(t.flows); room > t.cfg.Max || (l != nil && room > 0) {
		t.flows[k] = l
	}
	return l
}

// adopt lets a leg move to the namespace of a new flow: a static leg that was
// nowhere yet, or one without a socket whose namespace has ended or whose
// connections ended long ago (an engine was moved into a container, or its
// container replaced).
func (t *Table) adopt(want id) *leg {
	if l := t.unbound[want.peer]; l != nil && want.role == event.RoleClient {
		delete(t.unbound, want.peer)
		l.unbound = false
		t.move(l, want)
		return l
	}
	var found *leg
	for was, l := range t.legs {
		if was.role != want.role || was.peer != want.peer || len(l.sockets) > 0 {
			continue
		}
		left := l.out.GoneNS != 0 && t.nowNS-l.out.GoneNS >= movedAfter
		if (left || !t.watched(was.netns)) && (found == nil || l.name < found.name) {
			found = l
		}
	}
	if found != nil {
		delete(t.legs, found.id)
		t.move(found, want)
	}
	return found
}

func (t *Table) move(l *leg, to id) {
	if l.netns != to.netns {
		l.out.Netns, l.out.Device = to.netns, ""
	}
	l.id = to
	t.legs[to] = l
}

// create adds a leg under a name that no other has.
func (t *Table) create(want id) *leg {
	l := &leg{id: want, sockets: make(map[socketKey]*socket)}
	if want.role == event.RoleClient {
		l.static = t.static[want.peer]
	}
	l.usedNS, l.lostNS = t.nowNS, t.nowNS
	l.out = event.Leg{
		Role: want.role, Netns: want.netns, Peer: want.peer,
		Transport: event.TransportUnknown, Expected: ExpectAuto, FirstSeenNS: t.nowNS,
	}
	t.setName(l)
	t.legs[want] = l
	return l
}

// setName gives l the name its configuration says, made unique.
func (t *Table) setName(l *leg) {
	l.out.Expected = ExpectAuto
	switch {
	case l.static != nil:
		l.base, l.out.Expected = l.static.Name, l.static.Expect
	case l.role == event.RoleServer:
		l.base = "from " + l.peer.Addr().String()
	default:
		l.base = l.peer.String()
	}
	name := l.base
	if t.names[name] != nil {
		where := l.netns
		if where == "" {
			where = "host"
		}
		name = l.base + "@" + where
	}
	for n := 2; t.names[name] != nil; n++ {
		name = l.base + "@" + l.netns + "#" + strconv.Itoa(n)
	}
	l.name, l.out.Name = name, name
	t.names[name] = l
}

// remove forgets a leg and every flow that named it. Flows that did not fit
// get another chance.
func (t *Table) remove(l *leg) {
	if l.unbound {
		delete(t.unbound, l.peer)
	} else {
		delete(t.legs, l.id)
	}
	delete(t.names, l.name)
	for k, of := range t.flows {
		if of == l || of == nil {
			delete(t.flows, k)
		}
	}
}

// movedAfter is how long a leg must be without a connection before the same
// peer, reached from another namespace, counts as the same leg.
const movedAfter = int64(time.Minute)

// placeholder marks namespaces that were seen in a flow before an update
// named them.
const placeholder = "netns:"

func (t *Table) netnsName(inode uint32) string {
	if name, known := t.netns[inode]; known || inode == 0 {
		return name
	}
	return placeholder + utoa(inode)
}

func utoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func (t *Table) watched(netns string) bool {
	for _, name := range t.netns {
		if name == netns {
			return true
		}
	}
	// A namespace that is about to be named is there too.
	return strings.HasPrefix(netns, placeholder)
}

// Legs returns all legs by name.
func (t *Table) Legs() []event.Leg {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := make([]event.Leg, 0, len(t.names))
	for _, l := range t.names {
		out = append(out, l.out)
	}
	slices.SortFunc(out, func(a, b event.Leg) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Changes returns what changed since the last call, by name: for each leg whose
// transport, reason, namespace or device is another one, how it stands now.
func (t *Table) Changes() []event.LegChange {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []event.LegChange
	for _, l := range t.names {
		if l.changed {
			l.changed = false
			out = append(out, l.told)
		}
	}
	slices.SortFunc(out, func(a, b event.LegChange) int { return strings.Compare(a.Leg, b.Leg) })
	return out
}

// HostAddresses are the addresses by which peers know this host: those of all
// watched namespaces but for loopback and link-local ones, sorted, at most 256.
func (t *Table) HostAddresses() []netip.Addr {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Clone(t.addresses)
}

// Overflow counts how often a leg did not fit and became bound.Other.
func (t *Table) Overflow() uint64 { return t.overflow.Load() }
