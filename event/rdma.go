package event

import "net/netip"

// RDMA is one reading of the RDMA devices of this host.
type RDMA struct {
	TimeNS int64
	Ports  []RDMAPort
	// QueuePairs were listed at QueuePairsNS, which may be some seconds before
	// TimeNS; 0 means that they are not listed at all.
	QueuePairs   []QueuePair
	QueuePairsNS int64
	// Unlisted names the devices whose queue pairs could not be listed, or not
	// all of them: that one is missing says nothing there.
	Unlisted []string
	Counters []RDMACounter
}

// RDMAPort is one port of a device.
type RDMAPort struct {
	Device string // "mlx5_0"
	Port   int    // counted from 1
	Netdev string // "" where it has none, or one that cannot be seen
	// LinkLayer is "Ethernet" or "InfiniBand"; "" where the kernel did not say.
	LinkLayer string
	// Protocol is "roce", "ib", "iw", "opa" or "usnic"; "" as above.
	Protocol string
	State    string // "ACTIVE", "DOWN", "INIT", "ARMED", ...; "" as above
	Active   bool   // State is ACTIVE
	// RateBytesPerSecond of the link; 0 where the kernel did not say.
	RateBytesPerSecond float64
	// GIDs are the entries in use of the port's GID table.
	GIDs []GID
	// GIDsRead: the table could be read, so that an address which is not in
	// GIDs is not in the table.
	GIDsRead bool
}

// GID is one entry of a port's GID table: the address that a peer sees.
type GID struct {
	Index int
	// Addr is the address; IPv4 is unmapped. A GID that is no IP address
	// (InfiniBand, link-local) is still 16 bytes and stands here as such.
	Addr   netip.Addr
	Type   string // "IB/RoCE v1" or "RoCE v2"; "" where the kernel did not say
	Netdev string // "" where the kernel did not say
}

// QueuePair is one queue pair.
type QueuePair struct {
	Device string
	Port   int // 0 until it has reached INIT
	LQPN   uint32
	RQPN   uint32 // 0 when not connected
	Type   string // "RC", "UD", "GSI", ... as iproute2's rdma says
	State  string // "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"
	// PID of the process that made it; 0 for the kernel's own, for an owner in
	// a PID namespace that we do not see, and when the thread that opened the
	// device has ended.
	PID        int
	KernelName string // who made it inside the kernel; "" for processes
	// SendPSN rises as packets are sent, where the driver tells it.
	SendPSN uint32
}

// RDMACounter is one hardware counter of a port; monotonic unless its device
// is reset.
type RDMACounter struct {
	Device string
	Port   int
	Event  string // the driver's name: "out_of_sequence"
	Value  uint64
}
