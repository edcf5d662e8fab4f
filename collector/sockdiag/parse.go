package sockdiag

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"grayfail/event"
)

// sizeofMsg is struct inet_diag_msg (include/uapi/linux/inet_diag.h): family,
// state, timer, retrans; the 48 bytes of struct inet_diag_sockid; expires,
// rqueue, wqueue, uid, inode.
const sizeofMsg = 4 + 48 + 5*4

// attrInfo is INET_DIAG_INFO: struct tcp_info.
const attrInfo = 2

// Socket is one socket of a dump. Role, namespace, time and owner are not in
// the dump and left zero.
type Socket struct {
	event.TCPSocket
	// BytesSent and BytesRetrans count payload with retransmits and the
	// retransmits alone (since 4.19); NotSent waits for the window.
	BytesSent, BytesRetrans uint64
	NotSent                 uint32
	// InfoSize is how much of struct tcp_info this kernel sends.
	InfoSize int
}

// MessageError says which message of a dump could not be read.
type MessageError struct {
	Index int // position in the dump, from 0
	Err   error
}

func (e *MessageError) Error() string { return fmt.Sprintf("message %d: %v", e.Index, e.Err) }
func (e *MessageError) Unwrap() error { return e.Err }

var errTruncated = errors.New("truncated")

// maxErrors bounds the errors joined for one dump.
const maxErrors = 8

// Parse reads the messages of a SOCK_DIAG_BY_FAMILY dump of inet sockets. A
// message that cannot be read is left out and named in the error (a joined
// *MessageError); all others are returned.
func Parse(msgs []netlink.Message) ([]Socket, error) {
	sockets := make([]Socket, 0, len(msgs))
	var errs []error
	bad := 0
	for i := range msgs {
		if msgs[i].Header.Type != unix.SOCK_DIAG_BY_FAMILY {
			continue
		}
		s, err := parseSocket(msgs[i].Data)
		if err != nil {
			if bad++; bad <= maxErrors {
				errs = append(errs, &MessageError{i, err})
			}
			continue
		}
		sockets = append(sockets, s)
	}
	if bad > maxErrors {
		errs = append(errs, fmt.Errorf("%d more messages could not be read", bad-maxErrors))
	}
	return sockets, errors.Join(errs...)
}

func parseSocket(b []byte) (s Socket, err error) {
	if len(b) < sizeofMsg {
		return s, fmt.Errorf("struct inet_diag_msg: %w", errTruncated)
	}
	u32 := func(at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }
	src, dst := b[8:24], b[24:40]
	var local, peer netip.Addr
	switch b[0] {
	case unix.AF_INET:
		local, peer = netip.AddrFrom4([4]byte(src)), netip.AddrFrom4([4]byte(dst))
	case unix.AF_INET6:
		local, peer = netip.AddrFrom16([16]byte(src)).Unmap(), netip.AddrFrom16([16]byte(dst)).Unmap()
	default:
		return s, fmt.Errorf("address family %d is neither IPv4 nor IPv6", b[0])
	}
	s.State = event.TCPState(b[1])
	s.Flow = event.Flow{
		Local:  netip.AddrPortFrom(local, binary.BigEndian.Uint16(b[4:])),
		Peer:   netip.AddrPortFrom(peer, binary.BigEndian.Uint16(b[6:])),
		Socket: uint64(u32(44)) | uint64(u32(48))<<32,
	}
	s.ReceiveQueueBytes, s.UID, s.Inode = u32(56), u32(64), u32(68)
	ad, err := netlink.NewAttributeDecoder(b[sizeofMsg:])
	if err != nil {
		return s, err
	}
	for ad.Next() {
		if ad.Type() == attrInfo {
			ad.Do(s.parseInfo)
		}
	}
	return s, ad.Err()
}
