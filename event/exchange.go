package event

import "time"

// Exchange is one request/reply turn on a leg's socket, on the side that
// opened it: from the last send to the last reply byte before the next send.
type Exchange struct {
	Leg string // name of the leg; "" until named
	// SendNS is the last send before the reply began.
	SendNS int64
	// Duration runs from SendNS to the last reply byte (or to the scan, when
	// Open and no reply byte has come).
	Duration time.Duration
	// FirstByte is the delay to the first reply byte; 0 when none came.
	FirstByte time.Duration
	// Ack is the delay until everything sent was ACKed; 0 when never seen.
	Ack time.Duration
	// Stall is the largest gap between reply segments.
	Stall time.Duration
	// RequestBytes and ReplyBytes are payload.
	RequestBytes, ReplyBytes uint64
	// RTT is the smoothed RTT, MinRTT the windowed minimum (tcp_sock).
	RTT, MinRTT time.Duration
	// OutOfOrder counts segments that arrived ahead of a hole, Retransmits
	// segments this side sent again, DSACKs duplicates the peer reported;
	// each inside this exchange.
	OutOfOrder, Retransmits, DSACKs uint32
	// Open marks a look at an exchange that has not ended: a later Exchange
	// with the same Leg, Flow.Socket and SendNS replaces it.
	Open bool
	Flow Flow
}

// RetransmitKind is what made the kernel send a segment again, judged by
// icsk_ca_state (include/net/tcp.h, enum tcp_ca_state).
type RetransmitKind string

// The kinds, in the order of the metric's label values.
const (
	RetransmitFast   RetransmitKind = "fast"   // TCP_CA_Recovery
	RetransmitRTO    RetransmitKind = "rto"    // TCP_CA_Loss
	RetransmitTLP    RetransmitKind = "tlp"    // TCP_CA_Open, TCP_CA_Disorder: tail loss probe
	RetransmitCWR    RetransmitKind = "cwr"    // TCP_CA_CWR
	RetransmitSYN    RetransmitKind = "syn"    // SYN of an unanswered handshake
	RetransmitSYNACK RetransmitKind = "synack" // tcp_retransmit_synack
)

// RetransmitKinds lists every kind, so that metrics can be initialised.
var RetransmitKinds = []RetransmitKind{
	RetransmitFast, RetransmitRTO, RetransmitTLP, RetransmitCWR, RetransmitSYN, RetransmitSYNACK,
}

// Side says which host saw a retransmit.
type Side string

const (
	SideCoordinator Side = "coordinator" // the host that opened the connection
	SideWorker      Side = "worker"      // the host that accepted it
)

// Retransmit is one retransmitted skb (not segment) on a leg.
type Retransmit struct {
	Leg    string
	TimeNS int64
	Kind   RetransmitKind
	Side   Side
	Flow   Flow
}

// Connection is the life of one TCP connection, reported when it ends.
type Connection struct {
	Leg            string
	StartNS, EndNS int64
	// Established is false when the handshake never completed: the peer
	// refused, or nothing answered.
	Established bool
	Flow        Flow
}
