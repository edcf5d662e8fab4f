package sockdiag

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"grayfail/collector/netns"
)

const (
	// sizeofRequest is struct inet_diag_req_v2 (include/uapi/linux/inet_diag.h).
	sizeofRequest = 8 + 48
	// reqBytecode is INET_DIAG_REQ_BYTECODE.
	reqBytecode = 1
	// allStates are TCP_ESTABLISHED (1) to TCP_CLOSING (11). SYN-RECV covers
	// the kernel's TCP_NEW_SYN_RECV; bound sockets (13) are left out.
	allStates = 0xFFE
)

// request is one dump request, ready but for the address family.
type request struct {
	ports []uint16
	data  []byte
	err   error
}

func newRequest(ports []uint16) request {
	ae := netlink.NewAttributeEncoder()
	ae.Bytes(reqBytecode, Filter(ports))
	attrs, err := ae.Encode()
	head := make([]byte, sizeofRequest, sizeofRequest+len(attrs))
	head[1] = unix.IPPROTO_TCP
	head[2] = 1 << (attrInfo - 1) // idiag_ext
	binary.NativeEndian.PutUint32(head[4:], allStates)
	return request{ports, append(head, attrs...), err}
}

func (r request) dump(conn *netlink.Conn, family uint8) ([]Socket, error) {
	if r.err != nil {
		return nil, r.err
	}
	data := append([]byte(nil), r.data...)
	data[0] = family
	msgs, err := netns.Dump(conn, netlink.Message{
		Header: netlink.Header{Type: unix.SOCK_DIAG_BY_FAMILY}, Data: data,
	})
	name := "IPv4"
	if family == unix.AF_INET6 {
		name = "IPv6"
	}
	if err != nil && msgs == nil {
		return nil, fmt.Errorf("%s sockets: %w", name, err)
	}
	sockets, parseErr := Parse(msgs)
	if err = errors.Join(err, parseErr); err != nil {
		err = fmt.Errorf("%s sockets: %w", name, err)
	}
	return sockets, err
}
