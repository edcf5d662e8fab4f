package event

import (
	"net/netip"
	"time"
)

// Qdisc is one reading of one queueing discipline. Root and child count the
// same packets: never sum over handles.
type Qdisc struct {
	TimeNS int64
	Netns  string // name of the namespace; "" is our own
	Device string
	Kind   string
	Handle string // "8001:" as tc prints it
	Parent string // "root", "ingress", "clsact" or "8001:1"

	Bytes, Packets, Drops, Requeues, Overlimits uint64
	BacklogBytes, QueuePackets                  uint64
}

// TCPSocket is one reading of one watched socket by sock_diag.
type TCPSocket struct {
	TimeNS int64
	Flow   Flow
	State  TCPState
	Inode  uint32
	UID    uint32
	// RTT and MinRTT are tcpi_rtt and tcpi_min_rtt.
	RTT, MinRTT time.Duration
	// BytesAcked counts the SYN as one; BytesReceived is payload. Neither
	// counts retransmits.
	BytesAcked, BytesReceived uint64
	OutOfOrder                uint64 // tcpi_rcv_ooopack
	Retransmits               uint64 // tcpi_total_retrans, segments
	DSACKs                    uint64 // tcpi_dsack_dups
	SinceSend, SinceReceive   time.Duration
	// UnackedSegments are sent and not acknowledged; ReceiveQueueBytes wait
	// for the process.
	UnackedSegments   uint32
	ReceiveQueueBytes uint32
	// HasInfo is false when the kernel sent no tcp_info (TIME-WAIT, SYN-RECV).
	HasInfo bool
}

// TCPState is a socket state (include/net/tcp_states.h).
type TCPState uint8

// States of interest by their kernel numbers.
const (
	TCPEstablished TCPState = 1
	TCPSynSent     TCPState = 2
	TCPSynRecv     TCPState = 3
	TCPFinWait1    TCPState = 4
	TCPFinWait2    TCPState = 5
	TCPTimeWait    TCPState = 6
	TCPClose       TCPState = 7
	TCPCloseWait   TCPState = 8
	TCPLastAck     TCPState = 9
	TCPListen      TCPState = 10
	TCPClosing     TCPState = 11
)

// Transport is how a leg carries payload.
type Transport string

const (
	TransportRDMA     Transport = "rdma"
	TransportTCP      Transport = "tcp"
	TransportFallback Transport = "fallback"
	TransportQueued   Transport = "queued"
	TransportStalled  Transport = "stalled"
	TransportHalfOpen Transport = "half_open"
	TransportDead     Transport = "dead"
	TransportIdle     Transport = "idle"
	TransportUnknown  Transport = "unknown"
)

// Transports lists every transport, so that metrics can be initialised.
var Transports = []Transport{
	TransportRDMA, TransportTCP, TransportFallback, TransportQueued, TransportStalled,
	TransportHalfOpen, TransportDead, TransportIdle, TransportUnknown,
}

// Leg is the way from this host to one peer, as it stands now.
type Leg struct {
	Name   string
	Role   Role
	Netns  string // "" is our own
	Local  netip.Addr
	Peer   netip.AddrPort // port 0 for server-role legs
	Device string         // netdev that holds Local, or ""
	// RDMADevice and RDMAPort are the GID's owner; "" and 0 where none.
	RDMADevice string
	RDMAPort   int
	Transport  Transport
	Reason     string // why it is on that transport; "" where none is known
	Expected   string // auto, rdma or tcp
	Process    string
	PID        int
	// QueuePairs are those of the owner on the port of the leg, on other ports
	// of its device and on none: what the transport was concluded from.
	QueuePairs []QueuePair
	// Sockets in ESTABLISHED now.
	Connections int
	// Sums over the leg since it was first seen; monotonic.
	BytesAcked, BytesReceived, OutOfOrder uint64
	// RTT and MinRTT of the busiest socket; 0 means no reading.
	RTT, MinRTT time.Duration
	// FirstSeenNS, and GoneNS != 0 once no socket is left.
	FirstSeenNS, GoneNS int64
}

// LegChange says that a leg's transport or reason changed.
type LegChange struct {
	TimeNS    int64
	Leg       string
	Transport Transport
	Reason    string
	// Netns and Device say whose qdiscs are the leg's; "" where not known.
	Netns, Device string
	// RDMADevice and RDMAPort say whose hardware counters are the leg's; "" and
	// 0 where its address is on no RDMA port.
	RDMADevice string
	RDMAPort   int
}
