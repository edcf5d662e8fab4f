package verbs

import (
	"encoding/binary"
	"net/netip"
)

// QueuePair of type RC.
type QueuePair struct {
	Number uint32

	device *Device
	handle uint32
}

// States of enum ib_qp_state.
const (
	stateInit  = 1
	stateRTR   = 2
	stateRTS   = 3
	stateError = 6
)

// Bits of enum ib_qp_attr_mask.
const (
	maskState    = 1 << 0
	maskAccess   = 1 << 3
	maskPkey     = 1 << 4
	maskPort     = 1 << 5
	maskAV       = 1 << 7
	maskMTU      = 1 << 8
	maskTimeout  = 1 << 9
	maskRetry    = 1 << 10
	maskRNRRetry = 1 << 11
	maskRQPSN    = 1 << 12
	maskMaxRead  = 1 << 13
	maskMinRNR   = 1 << 15
	maskSQPSN    = 1 << 16
	maskMaxDest  = 1 << 17
	maskDestQPN  = 1 << 20
)

// QueuePair makes one in RESET.
func (d *Device) QueuePair() (*QueuePair, error) {
	const typeRC = 2
	var b request
	b.u64(0)                                  // user_handle
	b.u32(d.pd, d.cq, d.cq, 0, 4, 4, 1, 1, 0) // srq; send and receive: requests, pieces; inline data
	b.u8(0, typeRC, 0, 0)
	r, err := d.call("create_qp", cmdCreateQP, b, 8)
	if err != nil {
		return nil, err
	}
	return &QueuePair{device: d, handle: binary.NativeEndian.Uint32(r), Number: binary.NativeEndian.Uint32(r[4:])}, nil
}

// Destroy frees it.
func (q *QueuePair) Destroy() error {
	var b request
	b.u32(q.handle, 0)
	_, err := q.device.call("destroy_qp", cmdDestroyQP, b, 1)
	return err
}

// Init binds a queue pair in RESET to a port.
func (q *QueuePair) Init(port uint8) error {
	return q.modify("INIT", attributes{mask: maskState | maskAccess | maskPkey | maskPort, state: stateInit, port: port})
}

// Connect takes a queue pair in INIT to RTR: towards a peer, from the GID with
// an index of the port's table.
func (q *QueuePair) Connect(port, gidIndex uint8, peer netip.Addr, peerNumber uint32) error {
	return q.modify("RTR", attributes{
		mask:  maskState | maskAV | maskMTU | maskRQPSN | maskMinRNR | maskMaxDest | maskDestQPN,
		state: stateRTR, port: port, gidIndex: gidIndex, peer: peer, peerNumber: peerNumber,
	})
}

// Send takes a queue pair in RTR to RTS.
func (q *QueuePair) Send() error {
	return q.modify("RTS", attributes{
		mask:  maskState | maskTimeout | maskRetry | maskRNRRetry | maskSQPSN | maskMaxRead,
		state: stateRTS,
	})
}

// Fail takes a queue pair to ERR.
func (q *QueuePair) Fail() error {
	return q.modify("ERR", attributes{mask: maskState, state: stateError})
}

type attributes struct {
	mask           uint32
	state          uint8
	port, gidIndex uint8
	peer           netip.Addr
	peerNumber     uint32
}

// modify sends struct ib_uverbs_modify_qp, which has no response.
func (q *QueuePair) modify(name string, a attributes) error {
	var gid [16]byte
	if a.peer.IsValid() {
		gid = a.peer.As16() // IPv4 is mapped, as in a RoCE GID
	}
	const (
		mtu1024     = 3
		minRNRTimer = 12
	)
	var b request
	b.u8(gid[:]...)                                 // dest: dgid
	b.u32(0)                                        // flow label
	b.u16(0, 0)                                     // dlid
	b.u8(a.gidIndex, 1, 0, 0, 0, 0, 1, a.port)      // hop limit 1, global
	b.u8(make([]byte, 32)...)                       // alt_dest
	b.u32(q.handle, a.mask, 0, 100, 200)            // qkey, rq_psn, sq_psn
	b.u32(a.peerNumber, 0)                          // access flags
	b.u16(0, 0)                                     // pkey indexes
	b.u8(a.state, 0, mtu1024, 0, 0, 1, 1)           // max_rd_atomic, max_dest_rd_atomic
	b.u8(minRNRTimer, a.port, 14, 7, 7, 0, 0, 0, 0) // timeout, retries, alternates
	return q.device.write(name, cmdModifyQP, b, 0)
}
