package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"grayfail/collector/legs"
	"grayfail/collector/rdma/join"
	"grayfail/event"
)

// reasonText is a leg's reason for people, with the next step; the word itself
// where there is no more to say.
func reasonText(l *event.Leg) string {
	switch l.Reason {
	case join.ReasonPortNotProbed:
		return fmt.Sprintf("%s lives on port %d of %s, %s: it asked port 1. Give the leg an address of port 1, or the engine a build that asks every port",
			l.Local, l.RDMAPort, l.RDMADevice, heldText(l))
	case join.ReasonMemlock:
		return "the memory lock limit of the process leaves no room for the buffers of another RDMA connection. Raise it (LimitMEMLOCK=infinity, --ulimit memlock=-1) and restart the engine"
	case join.ReasonPeerWithoutRDMA:
		return "the peer did not answer with a queue pair: it is built or started without RDMA. Look at its build and its devices"
	case join.ReasonOptedOut:
		return "the environment of the process forbids this device (GGML_RDMA_DEV, GGML_RPC_NO_RDMA). Is that still meant?"
	case join.ReasonPortDown:
		return fmt.Sprintf("port %d of %s is not ACTIVE. Look at cable, switch port and link layer", l.RDMAPort, l.RDMADevice)
	case join.ReasonNoGID:
		return fmt.Sprintf("RDMA is expected, and %s is in no GID table. Move it from the bridge or bond to the RDMA netdev, or give the leg another address", l.Local)
	case join.ReasonNotRoCEv2:
		return fmt.Sprintf("%s is a GID of RoCE v1 only on %s. Switch the port to RoCE v2", l.Local, l.RDMADevice)
	case join.ReasonNoDeviceAccess:
		return "the process sees no RDMA device. Give it those of /dev/infiniband"
	case join.ReasonNoQueuePair:
		return fmt.Sprintf("the process made no queue pair on port %d of %s for this leg. Read what the engine said of RDMA when it started", l.RDMAPort, l.RDMADevice)
	case join.ReasonQueuePairGone:
		return "its queue pair is gone, its TCP connection stays, nothing flows"
	case join.ReasonNotListed:
		return "the queue pairs of this host cannot be listed: RDMA or TCP cannot be told"
	case join.ReasonOwnerUnknown:
		return "whose queue pairs are on that port is not known: RDMA or TCP cannot be told. Give the exporter CAP_SYS_PTRACE, in the host's PID namespace"
	case join.ReasonGIDsNotRead:
		return "a GID table could not be read: RDMA or TCP cannot be told"
	case legs.ReasonNotConnected:
		return "no process here has connected to this peer. Is the engine started with its address?"
	case legs.ReasonReplyOutstanding:
		return "requests are in flight, the last thing sent on this leg was not answered, and nothing moves: the peer's process hangs, or computes for very long. Look at it"
	case legs.ReasonNothingSent:
		return "requests are in flight and its queue pair sends nothing: the peer's process hangs, or this host computes for very long"
	case legs.ReasonUnread:
		return "data waits here and the process does not read it: it is stopped, swapping or blocked. Look at it"
	case legs.ReasonHelloUnanswered:
		return "connected, and its first message waits for an answer: the worker serves another client. Find who else is connected to it"
	case legs.ReasonNotAccepted:
		return "the process here has not accepted the connection: it serves another client"
	case legs.ReasonFINUnanswered:
		return "this end closed the connection and the peer does not hear it: its process there hangs. Does its address answer?"
	}
	return l.Reason
}

// heldText says where the process has its queue pairs in RTS.
func heldText(l *event.Leg) string {
	var ports []string
	for _, q := range l.QueuePairs {
		if q.State == "RTS" {
			ports = append(ports, strconv.Itoa(q.Port))
		}
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	if len(ports) == 0 {
		return "the process holds no queue pair there"
	}
	return fmt.Sprintf("the process holds queue pairs on port %s only", strings.Join(ports, ", "))
}

// rdmaText is "mlx5_0/2".
func rdmaText(l *event.Leg) string {
	if l.RDMADevice == "" {
		return "-"
	}
	return fmt.Sprintf("%s/%d", l.RDMADevice, l.RDMAPort)
}
