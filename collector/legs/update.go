package legs

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"grayfail/event"
)

// Update takes one reading of the sockets of the namespaces nets; sockets of
// others are not looked at. A socket that is missing from a namespace that was
// read is gone. A namespace that is missing from nets has ended, with
// everything in it.
func (t *Table) Update(nowNS int64, sockets []event.TCPSocket, nets []NetnsInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rebase(nowNS)
	t.nowNS = nowNS
	t.generation++
	t.setNets(nets)
	// Our own namespace first: where two legs want one name, it has it.
	for _, own := range []bool{true, false} {
		for i := range sockets {
			s := &sockets[i]
			if name, watched := t.netns[s.Flow.NetnsInode]; watched && (name == "") == own {
				t.take(nowNS, s)
			}
		}
	}
	unread := make(map[uint32]bool)
	infos := make(map[string]*NetnsInfo, len(nets))
	for i := range nets {
		infos[nets[i].Name] = &nets[i]
		unread[nets[i].Inode] = nets[i].Unread
	}
	for _, l := range t.names {
		t.settle(nowNS, l, unread, infos[l.netns])
	}
	t.stall(nowNS)
	for _, l := range t.names {
		l.tell(nowNS)
	}
	t.forget(nowNS)
	t.addresses = hostAddresses(nets)
}

// maxAddresses bounds the addresses of the host.
const maxAddresses = 256

func hostAddresses(nets []NetnsInfo) []netip.Addr {
	var out []netip.Addr
	for i := range nets {
		for a := range nets[i].Devices {
			if !a.IsLoopback() && !a.IsLinkLocalUnicast() {
				out = append(out, a)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	out = slices.Compact(out)
	return out[:min(len(out), maxAddresses)]
}

// setNets learns the names of namespaces. Flows in namespaces that ended are
// dropped; legs that were made before their namespace had a name get it.
func (t *Table) setNets(nets []NetnsInfo) {
	clear(t.netns)
	for i := range nets {
		t.netns[nets[i].Inode] = nets[i].Name
	}
	for k := range t.flows {
		if _, watched := t.netns[k.inode]; !watched && k.inode != 0 {
			delete(t.flows, k)
		}
	}
	for was, l := range t.legs {
		if !strings.HasPrefix(was.netns, placeholder) {
			continue
		}
		for inode, name := range t.netns {
			if was.netns != placeholder+utoa(inode) {
				continue
			}
			now := id{name, was.role, was.peer}
			if t.legs[now] != nil {
				t.remove(l) // known under its name already
			} else {
				delete(t.legs, was)
				t.move(l, now)
			}
		}
	}
}

// take adds one reading to its leg.
func (t *Table) take(nowNS int64, s *event.TCPSocket) {
	if !t.isLeg(&s.Flow) {
		return
	}
	key := socketKey{s.Flow.NetnsInode, s.Flow.Socket, s.Flow.Local, s.Flow.Peer}
	k := keyOf(&s.Flow)
	l := t.flows[k]
	if l == nil || l.sockets[key] == nil {
		if !counts(s.State) {
			return
		}
		if l = t.admit(k); l == nil {
			t.overflow.Add(1)
			return
		}
	}
	have := l.sockets[key]
	if have == nil {
		have = &socket{}
		l.sockets[key] = have
	}
	have.generation = t.generation
	acked, received, outOfOrder := have.update(nowNS, *s)
	l.out.BytesAcked += acked
	l.out.BytesReceived += received
	l.out.OutOfOrder += outOfOrder
	l.usedNS = nowNS
	if l.out.FirstSeenNS == 0 {
		l.out.FirstSeenNS = nowNS
	}
}

// settle drops the sockets that are gone, describes the leg and judges it.
func (t *Table) settle(nowNS int64, l *leg, unread map[uint32]bool, info *NetnsInfo) {
	if l.used.Swap(false) {
		l.usedNS = nowNS
		if l.out.FirstSeenNS == 0 {
			l.out.FirstSeenNS = nowNS
		}
	}
	connections, read := 0, false
	for key, s := range l.sockets {
		read = read || s.generation == t.generation
		gone := s.generation != t.generation && !unread[key.inode]
		if gone || !counts(s.last.State) {
			delete(l.sockets, key)
			continue
		}
		if established(s.last.State) {
			connections++
			l.hadSettled = l.hadSettled || s.facts(nowNS, t.cfg.Settling).Settled
		}
	}
	l.out.Connections = connections
	switch {
	case connections > 0:
		l.lostNS = 0
	case l.lostNS == 0:
		l.lostNS = nowNS
	}
	switch {
	case read || info == nil || !info.Unread:
		l.unreadNS = 0
	case l.unreadNS == 0:
		l.unreadNS = nowNS
	}
	l.describe(nowNS, info)
	t.conclude(nowNS, l)
}

// describe fills in what the busiest socket tells.
func (l *leg) describe(nowNS int64, info *NetnsInfo) {
	switch {
	case len(l.sockets) > 0:
		l.out.GoneNS = 0
	case l.out.GoneNS == 0 && l.out.FirstSeenNS != 0:
		l.out.GoneNS = nowNS
	}
	best := l.busiest()
	if best == nil {
		l.out.PID, l.out.RTT, l.out.MinRTT = 0, 0, 0
	} else {
		f := &best.last.Flow
		l.out.Local = f.Local.Addr()
		l.out.RTT, l.out.MinRTT = best.last.RTT, best.last.MinRTT
		l.out.PID = f.PID
		if f.Comm != "" {
			l.out.Process = f.Comm
		}
	}
	if info != nil && info.Devices != nil {
		l.out.Device = info.Devices[l.out.Local]
	}
}

// busiest is the connection that moved most since the last reading; where
// nothing moves, the one that carried most.
func (l *leg) busiest() *socket {
	var best *socket
	for _, s := range l.sockets {
		if best == nil || s.busier(best) {
			best = s
		}
	}
	return best
}

func (s *socket) busier(than *socket) bool {
	a, b := established(s.last.State), established(than.last.State)
	if a != b {
		return a
	}
	if s.moved != than.moved {
		return s.moved > than.moved
	}
	if p, q := payload(&s.last), payload(&than.last); p != q {
		return p > q
	}
	// Any order that does not change from reading to reading.
	return s.last.Flow.Socket < than.last.Flow.Socket
}

// conclude judges the leg.
func (t *Table) conclude(nowNS int64, l *leg) {
	if l.out.Transport == event.TransportStalled {
		l.out.Transport, l.out.Reason = l.plain, l.plainReason
	}
	l.out.Transport, l.out.Reason = l.judge(nowNS, t.cfg.Settling)
	if t.cfg.Join != nil {
		var facts Facts
		for _, s := range l.sockets {
			facts.Sockets = append(facts.Sockets, s.facts(nowNS, t.cfg.Settling))
		}
		joined := l.out
		t.cfg.Join(nowNS, facts, &joined)
		l.out.Transport, l.out.Reason = joined.Transport, joined.Reason
		l.out.RDMADevice, l.out.RDMAPort, l.out.QueuePairs = joined.RDMADevice, joined.RDMAPort, joined.QueuePairs
	}
}

// tell notes what changed.
func (l *leg) tell(nowNS int64) {
	now := event.LegChange{
		Leg: l.name, Transport: l.out.Transport, Reason: l.out.Reason,
		Netns: l.out.Netns, Device: l.out.Device, RDMADevice: l.out.RDMADevice, RDMAPort: l.out.RDMAPort,
	}
	was := l.told
	was.TimeNS = 0
	if was == now || (was == event.LegChange{} && now.Transport == event.TransportUnknown && now.Device == "") {
		return
	}
	now.TimeNS = nowNS
	l.told, l.changed = now, true
}

// forget removes legs that are not connected and that nothing has used for
// long; static ones stay.
func (t *Table) forget(nowNS int64) {
	for _, l := range t.names {
		idle := time.Duration(nowNS - max(l.usedNS, l.out.GoneNS))
		if l.static == nil && len(l.sockets) == 0 && idle >= t.cfg.Forget {
			t.remove(l)
		}
	}
}

// Connection takes a connection that ended, as ebpf reports it. One that was
// never established is evidence that the peer cannot be reached.
func (t *Table) Connection(c event.Connection) {
	if c.Established || c.Flow.Role != event.RoleClient {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isLeg(&c.Flow) {
		return
	}
	if l := t.admit(keyOf(&c.Flow)); l != nil {
		l.used.Store(true)
		l.refusedNS = max(l.refusedNS, c.EndNS)
	}
}
