package join

import (
	"cmp"
	"sync"
	"time"

	"grayfail/collector/legs"
	"grayfail/event"
)

const (
	// handshakeBytes: payload is what goes beyond this (see package legs).
	handshakeBytes = 4096
	// listFor is how long a list of queue pairs says that one is missing.
	listFor = 30 * time.Second
	// maxLegs bounds what is remembered of legs; the table of legs has fewer.
	maxLegs = 1024
	// legFor is how long a leg that is not judged any more is remembered when
	// there is no room.
	legFor = int64(time.Minute)
)

// Options of a Judge. The zero value is ready to use.
type Options struct {
	// Settling is how long a connection must have lived when queue pairs are
	// listed, for the absence of one to mean anything, and how long TCP must
	// be quiet to have stopped. Default 1 s: an engine's start-up lasts some
	// hundred milliseconds.
	Settling time.Duration
	// Process tells what is known of the process pid; nil where nothing is.
	// It is called when a leg is found in fallback, and then once for each
	// list of queue pairs.
	Process func(pid int) Process
}

// Judge joins legs with RDMA. Safe for concurrent use.
type Judge struct {
	opts Options

	mu     sync.Mutex
	resets resets
	legs   map[string]*memory
	// latest is the last reading; what a round of legs is judged by is the
	// reading at its beginning, the same for all of them. They have one time.
	latest  state
	roundNS int64
	state
}

// state is an indexed reading.
type state struct {
	devices devices
	pairs   pairs
}

// New returns a Judge that knows no device: until its first Reading, and as
// long as readings hold none, legs stay as TCP describes them.
func New(opts Options) *Judge {
	opts.Settling = cmp.Or(opts.Settling, time.Second)
	return &Judge{opts: opts, legs: make(map[string]*memory)}
}

// Reading takes what was read of the RDMA devices; one without ports says that
// this host has none.
func (j *Judge) Reading(r event.RDMA) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.latest.devices = indexDevices(r.Ports)
	if r.QueuePairsNS == 0 || r.QueuePairsNS != j.latest.pairs.listedNS {
		j.latest.pairs = indexPairs(&r)
		j.resets.list(&r)
	}
}

// memory is what is known of a leg.
type memory struct {
	judgedNS int64
	// sockets are the established ones of the last judgement, and whether they
	// had settled. What is known holds as long as one of those lives.
	sockets map[socketKey]bool
	// known is rdma, fallback, or "" while neither was ever concluded.
	known  event.Transport
	reason string
	// reasonNS is the list of queue pairs that reason was concluded from.
	reasonNS int64
	at       place
	// claims were made by the sockets in judged, in the last round.
	claims []claim
	judged map[socketKey]bool
}

type socketKey struct {
	inode  uint32
	cookie uint64
	// ports tell sockets apart on kernels without cookies.
	local, peer uint16
}

func keyOf(f *event.Flow) socketKey {
	return socketKey{f.NetnsInode, f.Socket, f.Local.Port(), f.Peer.Port()}
}

// memory finds what is known of a leg, or begins anew.
func (j *Judge) memory(nowNS int64, name string) *memory {
	m := j.legs[name]
	if m == nil {
		m = &memory{}
		if len(j.legs) >= maxLegs {
			for other, o := range j.legs {
				if nowNS-o.judgedNS >= legFor || nowNS < o.judgedNS {
					delete(j.legs, other)
				}
			}
		}
		if len(j.legs) < maxLegs {
			j.legs[name] = m
		}
	}
	m.judgedNS = nowNS
	return m
}

// connected takes the established sockets of now, and forgets what was known
// of connections that ended.
func (m *memory) connected(facts legs.Facts) {
	now := make(map[socketKey]bool, len(facts.Sockets))
	lives := false
	for i := range facts.Sockets {
		s := &facts.Sockets[i]
		if s.State == event.TCPEstablished {
			k := keyOf(&s.Flow)
			now[k] = s.Settled
			lives = lives || (s.Settled && m.sockets[k])
		}
	}
	if !lives {
		m.known, m.reason, m.reasonNS = "", "", 0
	}
	m.sockets = now
}

// Join settles the transport of a leg that TCP says to carry payload or to be
// idle; it is legs.Config.Join. What TCP knows to be queued, half-open or dead
// is left alone.
func (j *Judge) Join(nowNS int64, facts legs.Facts, leg *event.Leg) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if nowNS != j.roundNS {
		j.roundNS, j.state = nowNS, j.latest
	}
	m := j.memory(nowNS, leg.Name)
	m.connected(facts)
	before := m.judged
	m.claims, m.judged = nil, nil
	leg.RDMADevice, leg.RDMAPort, leg.QueuePairs = "", 0, nil

	at := j.devices.home(leg.Local, leg)
	if !at.known() {
		m.known = ""
		j.withoutGID(leg)
		return
	}
	m.at = j.pairs.nearest(leg.PID, at)
	leg.RDMADevice, leg.RDMAPort = m.at.device, m.at.port
	leg.QueuePairs = j.pairs.of(leg.PID, m.at)
	result := j.judge(nowNS, facts, leg, m, before)
	m.judged = m.sockets
	switch leg.Transport {
	case event.TransportTCP, event.TransportIdle:
	case event.TransportUnknown:
		return // too young, or not read any more
	default:
		return
	}
	j.apply(result, leg, m)
}

// withoutGID is a leg whose address no port has: TCP by design.
func (j *Judge) withoutGID(leg *event.Leg) {
	if leg.Transport != event.TransportTCP && leg.Transport != event.TransportIdle {
		return
	}
	switch {
	case j.devices.maybeHome(leg):
		leg.Transport, leg.Reason = event.TransportUnknown, ReasonGIDsNotRead
	case leg.Expected == legs.ExpectRDMA && len(j.devices.ports) > 0:
		leg.Reason = ReasonNoGID
	}
}

// apply writes a verdict into the leg.
func (j *Judge) apply(v verdict, leg *event.Leg, m *memory) {
	switch v.is {
	case isRDMA:
		m.known, m.reason = event.TransportRDMA, ""
		leg.Transport = event.TransportRDMA // TCP's reason stays: data may be unacknowledged
	case isFallback:
		j.fallback(v, leg, m)
	case isIdle:
		m.known = ""
		leg.Transport = event.TransportIdle
	case isGone:
		m.known = ""
		leg.Transport, leg.Reason = event.TransportUnknown, ReasonQueuePairGone
	case isOpen:
		switch {
		case m.known == event.TransportFallback:
			j.tell(leg, m)
		case m.known != "":
			leg.Transport = m.known
		default:
			leg.Transport, leg.Reason = event.TransportUnknown, v.reason
		}
	}
}

// fallback gives the reason, which may become better known with every list of
// queue pairs.
func (j *Judge) fallback(v verdict, leg *event.Leg, m *memory) {
	if m.known != event.TransportFallback || m.reasonNS != j.pairs.listedNS || m.at != v.at || m.reason == ReasonPortDown {
		reason := j.reason(v.socket, v.at, v.sinceNS)
		// What was concluded at the start may not show any more.
		was := m.known == event.TransportFallback && m.at == v.at && m.reason != "" && m.reason != ReasonPortDown
		if !was || reason != ReasonNoQueuePair {
			m.reason = reason
		}
		m.reasonNS = j.pairs.listedNS
	}
	m.known, m.at = event.TransportFallback, v.at
	leg.RDMADevice, leg.RDMAPort = v.at.device, v.at.port
	j.tell(leg, m)
}

// tell says that a leg is in fallback, unless that is what its operator wants.
func (j *Judge) tell(leg *event.Leg, m *memory) {
	if leg.Expected == legs.ExpectTCP {
		leg.Transport = event.TransportTCP
		return
	}
	leg.Transport, leg.Reason = event.TransportFallback, m.reason
}
