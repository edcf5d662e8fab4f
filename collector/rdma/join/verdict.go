package join

import (
	"time"

	"grayfail/collector/legs"
	"grayfail/event"
)

type conclusion int

const (
	isOpen     conclusion = iota // it cannot be told
	isIdle                       // no queue pair, and nothing carried
	isRDMA                       // a queue pair in RTS
	isFallback                   // payload over TCP, no queue pair
	isGone                       // it was RDMA, and the queue pair is gone
)

type verdict struct {
	is     conclusion
	reason string // of isOpen: why it cannot be told

	// of a socket in fallback
	socket  *legs.SocketFacts
	at      place
	sinceNS int64
}

// claim is a connection that may be what a queue pair of its process is for.
type claim struct {
	owner
	strength
}

// strength of a claim. An engine makes the queue pair of a connection at its
// start: one that carried payload over TCP had none then, and stands behind
// those that carried nothing.
type strength int

const (
	weak   strength = iota // it carried payload and stopped
	young                  // it has not settled
	likely                 // settled, and carried nothing
	sure                   // it runs over RDMA
	strengths
)

// judge concludes from a leg's settled sockets, and notes what they claim. One
// socket in fallback makes the leg. before holds its sockets that the round before has
// judged.
func (j *Judge) judge(nowNS int64, facts legs.Facts, leg *event.Leg, m *memory, before map[socketKey]bool) verdict {
	var result verdict
	found := false
	for i := range facts.Sockets {
		s := &facts.Sockets[i]
		if s.State != event.TCPEstablished {
			continue
		}
		at := j.devices.home(s.Flow.Local.Addr(), leg)
		if !at.known() {
			continue
		}
		_, seen := before[keyOf(&s.Flow)]
		c := connection{
			seen:        seen,
			SocketFacts: s, owner: owner{s.Flow.PID, j.pairs.nearest(s.Flow.PID, at)},
			known: m.known, quiet: min(s.SinceSend, s.SinceReceive) >= j.opts.Settling,
			carried: s.Payload > handshakeBytes, sinceNS: nowNS - int64(s.Age),
		}
		v := verdict{}
		if s.Settled {
			v = j.one(nowNS, &c, leg.Name, m)
			if !found || v.is.weight() > result.is.weight() {
				result, found = v, true
			}
		}
		switch {
		case v.is == isRDMA:
			m.claims = append(m.claims, claim{c.owner, sure})
		case v.is != isOpen || (c.carried && !c.quiet):
			// What moves on TCP claims nothing.
		case !s.Settled:
			m.claims = append(m.claims, claim{c.owner, young})
		case c.carried:
			m.claims = append(m.claims, claim{c.owner, weak})
		default:
			m.claims = append(m.claims, claim{c.owner, likely})
		}
	}
	return result
}

// weight orders conclusions: what one socket of a leg says outweighs another.
func (c conclusion) weight() int {
	switch c {
	case isFallback:
		return 4
	case isRDMA:
		return 3
	case isGone:
		return 2
	case isOpen:
		return 1
	}
	return 0
}

// connection is one socket with what is known of it.
type connection struct {
	*legs.SocketFacts
	owner
	known   event.Transport // of its leg
	quiet   bool            // no byte either way for Options.Settling
	carried bool            // payload beyond a handshake
	// seen: it was judged in the round before, so that whoever else may claim
	// its queue pair has done so.
	seen    bool
	sinceNS int64 // it was established at the latest
}

// one concludes from one settled socket.
func (j *Judge) one(nowNS int64, c *connection, leg string, m *memory) verdict {
	if reason, listed := j.listed(nowNS, c); !listed {
		return verdict{reason: reason}
	}
	have := j.pairs.counts[c.owner]
	// all: every queue pair that this process may have here is known.
	all := !j.pairs.unlisted[c.device] && !have.maybe && !j.pairs.strangers[c.place]
	if c.pid == 0 {
		// Nobody's queue pair is ours where there is none at all.
		all = all && !j.pairs.processes[c.place]
	}
	// left is what is left of its queue pairs to those that carried payload,
	// ours what is left to this connection if everybody else gets one.
	claims := j.claimed(c.owner, leg, m)
	spare := have.ready - claims[sure]
	left := spare - claims[likely]
	ours := left - claims[young]
	if c.carried {
		ours -= claims[weak]
	}
	if have.shared {
		spare, left, ours = have.ready, have.ready, have.ready
	}
	moving := c.carried && !c.quiet
	switch {
	case !c.HasInfo:
		return verdict{}
	case have.ready > 0 && !moving && (c.known == event.TransportRDMA || (c.seen && ours > 0)):
		return verdict{is: isRDMA}
	case !all:
		return verdict{reason: j.whyOpen(c)}
	case spare > 0 && (left > 0 || !c.carried):
		return verdict{} // it may be ours, or that of another leg
	case c.known == event.TransportRDMA && !moving && have.ready == 0:
		return verdict{is: isGone}
	case c.carried:
		return verdict{is: isFallback, socket: c.SocketFacts, at: c.place, sinceNS: c.sinceNS}
	}
	return verdict{is: isIdle}
}

// listed says whether there is a list of queue pairs that was made when this
// connection had settled, and lately.
func (j *Judge) listed(nowNS int64, c *connection) (reason string, ok bool) {
	at := j.pairs.listedNS
	switch {
	case at == 0 || nowNS-at > int64(listFor):
		return ReasonNotListed, false
	case time.Duration(at-c.sinceNS) < j.opts.Settling:
		return "", false
	}
	return "", true
}

func (j *Judge) whyOpen(c *connection) string {
	if j.pairs.unlisted[c.device] {
		return ReasonNotListed
	}
	return ReasonOwnerUnknown
}

// claimed counts the connections of a process on a port that have, or may
// have, one of its queue pairs, by strength: those of other legs, and of this
// one so far.
func (j *Judge) claimed(who owner, leg string, m *memory) (count [strengths]int) {
	add := func(list []claim) {
		for _, c := range list {
			if c.owner == who {
				count[c.strength]++
			}
		}
	}
	for name, other := range j.legs {
		if name != leg {
			add(other.claims)
		}
	}
	add(m.claims)
	return count
}
