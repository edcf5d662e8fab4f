package join

import (
	"time"

	"grayfail/collector/legs"
	"grayfail/event"
)

// Reasons of a fallback, and of others where they say so.
const (
	ReasonPortDown        = "port_down"         // the port is not ACTIVE
	ReasonNotRoCEv2       = "not_roce_v2"       // the address is a GID of RoCE v1 only
	ReasonOptedOut        = "opted_out"         // the environment of the process forbids it
	ReasonNoDeviceAccess  = "no_device_access"  // the process cannot open the device
	ReasonPortNotProbed   = "port_not_probed"   // the address lives on a port that the process does not look at
	ReasonMemlock         = "memlock"           // the limit leaves no room for the buffers of another connection
	ReasonPeerWithoutRDMA = "peer_without_rdma" // queue pairs in RESET at the start, which went away
	ReasonNoQueuePair     = "no_queue_pair"     // none of these
	ReasonNoGID           = "no_gid"            // tcp, where RDMA is expected: no port has the address
	ReasonQueuePairGone   = "queue_pair_gone"   // unknown: it was RDMA, TCP lives, nothing flows
	ReasonNotListed       = "not_listed"        // unknown: queue pairs are not listed, or not all
	ReasonOwnerUnknown    = "owner_unknown"     // unknown: whose the queue pairs are, or the socket, is not known
	ReasonGIDsNotRead     = "gids_not_read"     // unknown: a GID table could not be read
)

// connectionBytes is what ggml's RPC pins for a connection: 256 KiB to send
// and 6 MiB to receive; 6400 kB of VmPin were measured.
const connectionBytes = 6400 << 10

// Environment variables of ggml's RPC.
const (
	envDevice = "GGML_RDMA_DEV" // only the device of that name is looked at
	envNoRDMA = "GGML_RPC_NO_RDMA"
)

// reason concludes why a connection has no queue pair; the first that is
// certain.
func (j *Judge) reason(s *legs.SocketFacts, at place, sinceNS int64) string {
	port := j.devices.ports[at]
	pid := s.Flow.PID
	var p Process
	if pid != 0 && j.opts.Process != nil {
		p = j.opts.Process(pid)
	}
	any := pid != 0 && j.pairs.has(pid, "", 0)
	switch {
	case !port.Active:
		return ReasonPortDown
	case j.devices.roceV1Only(at, s.Flow.Local.Addr()):
		return ReasonNotRoCEv2
	case p.Device != "" && p.Device != at.device, p.NoRDMA && !any:
		return ReasonOptedOut
	case p.NoDevices && !any:
		return ReasonNoDeviceAccess
	case at.port > 1 && (pid == 0 || !j.pairs.has(pid, at.device, at.port)):
		return ReasonPortNotProbed
	case p.Limited && p.PinnedBytes+connectionBytes > p.MemlockBytes:
		return ReasonMemlock
	case !any && j.resets.seen(pid, at.device, sinceNS):
		return ReasonPeerWithoutRDMA
	}
	return ReasonNoQueuePair
}

const (
	// resetBefore and resetAfter are when, around a connection's start, its
	// queue pair in RESET may have been listed.
	resetBefore = int64(2 * time.Second)
	resetAfter  = int64(5 * time.Second)
	maxResets   = 1024
	resetsFor   = int64(24 * time.Hour)
)

// resets are queue pairs that were listed in RESET. An engine makes one for
// each connection, and takes it away at once when the peer does not answer with
// its own. It lives for 40 to 60 ms, so that most are missed.
type resets struct {
	byPair map[pairKey]*reset
}

type pairKey struct {
	device string
	lqpn   uint32
}

type reset struct {
	pid      int
	seenNS   int64
	vanished bool
}

// list takes a list of queue pairs.
func (r *resets) list(now *event.RDMA) {
	if r.byPair == nil {
		r.byPair = make(map[pairKey]*reset)
	}
	states := make(map[pairKey]string, len(now.QueuePairs))
	for i := range now.QueuePairs {
		q := &now.QueuePairs[i]
		k := pairKey{q.Device, q.LQPN}
		states[k] = q.State
		if q.State == "RESET" && q.PID != 0 && len(r.byPair) < maxResets {
			r.byPair[k] = &reset{pid: q.PID, seenNS: now.QueuePairsNS}
		}
	}
	for k, seen := range r.byPair {
		switch state, there := states[k]; {
		case !there:
			// A number is used again sooner or later.
			seen.vanished = true
			if now.QueuePairsNS-seen.seenNS > resetsFor {
				delete(r.byPair, k)
			}
		case state != "RESET":
			delete(r.byPair, k) // it came to something
		}
	}
}

// seen says whether a process had a queue pair in RESET when a connection
// started, and took it away.
func (r *resets) seen(pid int, device string, sinceNS int64) bool {
	for k, seen := range r.byPair {
		if seen.vanished && seen.pid == pid && k.device == device &&
			seen.seenNS >= sinceNS-resetBefore && seen.seenNS <= sinceNS+resetAfter {
			return true
		}
	}
	return false
}
