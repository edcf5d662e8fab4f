package legs

import (
	"net/netip"

	"grayfail/event"
)

// SetConfig replaces the configuration. Legs keep their numbers; one gets
// another name when the configuration names its peer otherwise, and one that
// it no longer asks for is removed.
func (t *Table) SetConfig(cfg Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cfg = withDefaults(cfg)
	t.ports = make(map[uint16]bool, len(t.cfg.Ports))
	for _, port := range t.cfg.Ports {
		t.ports[port] = true
	}
	t.static = make(map[netip.AddrPort]*Static, len(t.cfg.Static))
	for i := range t.cfg.Static {
		s := &t.cfg.Static[i]
		if t.static[s.Peer] == nil {
			t.static[s.Peer] = s
		}
	}
	clear(t.flows)
	t.rename()
	for i := range t.cfg.Static {
		if s := &t.cfg.Static[i]; t.static[s.Peer] == s && !t.has(s.Peer) {
			t.expect(s)
		}
	}
}

// rename applies the new configuration to the legs there are.
func (t *Table) rename() {
	old := make([]*leg, 0, len(t.names))
	for _, l := range t.names {
		old = append(old, l)
	}
	var renamed []*leg
	for _, l := range old {
		var static *Static
		if l.role == event.RoleClient {
			static = t.static[l.peer]
		}
		keep := static != nil || (!l.unbound && t.discovered(l))
		if !keep {
			t.remove(l)
			continue
		}
		was := l.static
		l.static = static
		if (was == nil) != (static == nil) || (was != nil && was.Name != static.Name) {
			delete(t.names, l.name)
			renamed = append(renamed, l)
		} else if static != nil {
			l.out.Expected = static.Expect
		}
	}
	for _, l := range renamed {
		t.setName(l)
		l.told = event.LegChange{} // told anew under the new name
	}
}

// discovered says whether a leg's ports are watched. A server's port is not
// kept, so such a leg stays while any port is; it is forgotten in time.
func (t *Table) discovered(l *leg) bool {
	if l.role == event.RoleServer {
		return len(t.ports) > 0 || len(t.found.Locals) > 0
	}
	return t.ports[l.peer.Port()] || t.found.Peers[l.peer]
}

func (t *Table) has(peer netip.AddrPort) bool {
	for _, l := range t.names {
		if l.role == event.RoleClient && l.peer == peer {
			return true
		}
	}
	return false
}

// expect lists a static leg before anything is connected to it.
func (t *Table) expect(s *Static) {
	if len(t.names) >= t.cfg.Max {
		t.overflow.Add(1)
		return
	}
	l := &leg{
		id:      id{role: event.RoleClient, peer: s.Peer},
		static:  s,
		unbound: true,
		sockets: make(map[socketKey]*socket),
		out:     event.Leg{Role: event.RoleClient, Peer: s.Peer, Transport: event.TransportUnknown},
	}
	t.setName(l)
	t.unbound[s.Peer] = l
}
