package nldev

import (
	"errors"
	"strconv"

	"github.com/mdlayher/netlink"
)

// QueuePair is one queue pair.
type QueuePair struct {
	Device Handle
	// Port is 0 until the queue pair has reached INIT: in RESET it belongs to
	// no port.
	Port uint32
	LQPN uint32 // its number on this host
	RQPN uint32 // that of the peer; 0 when not connected, and for all but RC and UC
	Type QPType
	// State is StateUnknown when the kernel did not tell.
	State QPState
	// PID is the thread that opened the device, in the PID namespace of the
	// reader: often, not always, the process. 0 for the kernel's own queue
	// pairs, for owners in a PID namespace that the reader does not see, and
	// once that thread has ended.
	PID uint32
	// KernelName is who made it inside the kernel: "ib_core"; "" for those of
	// processes.
	KernelName string
	// PDN is the protection domain of a process's queue pair, counted from 0.
	PDN uint32
	// SendPSN rises as packets are sent, where the driver tells.
	SendPSN, ReceivePSN uint32
}

// QPType is enum ib_qp_type (include/rdma/ib_verbs.h).
type QPType uint8

// Types of queue pairs. TypeUnknown stands for one the kernel did not tell.
const (
	TypeSMI       QPType = 0
	TypeGSI       QPType = 1
	TypeRC        QPType = 2
	TypeUC        QPType = 3
	TypeUD        QPType = 4
	TypeRawPacket QPType = 8
	TypeXRCIni    QPType = 9
	TypeXRCTgt    QPType = 10
	TypeUnknown   QPType = 0xfe
	TypeDriver    QPType = 0xff
)

// String names a type as iproute2's rdma does.
func (t QPType) String() string {
	switch t {
	case TypeSMI:
		return "SMI"
	case TypeGSI:
		return "GSI"
	case TypeRC:
		return "RC"
	case TypeUC:
		return "UC"
	case TypeUD:
		return "UD"
	case TypeRawPacket:
		return "RAW_PACKET"
	case TypeXRCIni:
		return "XRC_INI"
	case TypeXRCTgt:
		return "XRC_TGT"
	case TypeDriver:
		return "DRIVER"
	case TypeUnknown:
		return "unknown"
	}
	return strconv.Itoa(int(t))
}

// QPState is enum ib_qp_state (include/rdma/ib_verbs.h).
type QPState uint8

// States of queue pairs.
const (
	StateReset   QPState = 0
	StateInit    QPState = 1
	StateRTR     QPState = 2 // ready to receive; a responder may stay there
	StateRTS     QPState = 3 // ready to send
	StateSQD     QPState = 4 // send queue drained
	StateSQE     QPState = 5 // send queue error
	StateErr     QPState = 6
	StateUnknown QPState = 0xff
)

// String names a state as iproute2's rdma does.
func (s QPState) String() string {
	names := [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}
	switch {
	case int(s) < len(names):
		return names[s]
	case s == StateUnknown:
		return "unknown"
	}
	return strconv.Itoa(int(s))
}

// ParseQueuePairs reads the answer to RES_QP_GET for one device. A number that
// is listed twice, as the positional cursor of a dump does while others come
// and go, is returned once, as it was listed last.
func ParseQueuePairs(msgs []netlink.Message) ([]QueuePair, error) {
	// An entry of an RC queue pair has about 80 bytes.
	size := 0
	for i := range msgs {
		size += len(msgs[i].Data)
	}
	pairs := make([]QueuePair, 0, size/80)
	at := make(map[uint32]int, size/80)
	names := make(map[string]string)
	err := table(msgs, attrResQP, attrResQPEntry, ignore, func(device Handle, b []byte) error {
		q, err := parseQueuePair(b, names)
		if err != nil {
			return err
		}
		q.Device = device
		if i, twice := at[q.LQPN]; twice {
			pairs[i] = q
			return nil
		}
		at[q.LQPN] = len(pairs)
		pairs = append(pairs, q)
		return nil
	})
	return pairs, err
}

func parseQueuePair(b []byte, names map[string]string) (QueuePair, error) {
	q := QueuePair{Type: TypeUnknown, State: StateUnknown}
	numbered := false
	err := attributes(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case attrPortIndex:
			q.Port = ad.Uint32()
		case attrResLQPN:
			q.LQPN, numbered = ad.Uint32(), true
		case attrResRQPN:
			q.RQPN = ad.Uint32()
		case attrResType:
			q.Type = QPType(ad.Uint8())
		case attrResState:
			q.State = QPState(ad.Uint8())
		case attrResPID:
			q.PID = ad.Uint32()
		case attrResKernName:
			q.KernelName = intern(names, text(ad))
		case attrResPDN:
			q.PDN = ad.Uint32()
		case attrResSQPSN:
			q.SendPSN = ad.Uint32()
		case attrResRQPSN:
			q.ReceivePSN = ad.Uint32()
		}
	})
	if err == nil && !numbered {
		err = errors.New("RES_LQPN is missing")
	}
	return q, err
}

// intern keeps one copy of a name that thousands of entries share.
func intern(names map[string]string, s string) string {
	if kept, known := names[s]; known {
		return kept
	}
	names[s] = s
	return s
}
