package netns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// rtextFilterSkipStats leaves the statistics out of a link (since 4.4,
// include/uapi/linux/rtnetlink.h): only names are wanted.
const rtextFilterSkipStats = 1 << 3

var errTruncated = errors.New("truncated")

// LinkRequest asks rtnetlink for one interface, or for all with index 0.
func LinkRequest(index int) (netlink.Message, error) {
	req := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(req[4:], uint32(index))
	ae := netlink.NewAttributeEncoder()
	ae.Uint32(unix.IFLA_EXT_MASK, rtextFilterSkipStats)
	attrs, err := ae.Encode()
	return netlink.Message{
		Header: netlink.Header{Type: unix.RTM_GETLINK, Flags: netlink.Request},
		Data:   append(req, attrs...),
	}, err
}

// Links reads the names of all interfaces, by index. With an error, the names
// that could be read are returned too.
func Links(conn *netlink.Conn) (map[int]string, error) {
	req, err := LinkRequest(0)
	if err != nil {
		return nil, err
	}
	msgs, err := Dump(conn, req)
	if err != nil && msgs == nil {
		return nil, fmt.Errorf("RTM_GETLINK: %w", err)
	}
	names, parseErr := ParseLinks(msgs)
	if err = errors.Join(err, parseErr); err != nil {
		err = fmt.Errorf("RTM_GETLINK: %w", err)
	}
	return names, err
}

// LinkName asks for the name of one interface of the socket's namespace
// (SIOCGIFNAME, net/core/dev_ioctl.c): a hundredth of what the interface takes
// in a list, whose message has some forty attributes. The error is unix.ENODEV
// where there is no such interface; any other says that this way is closed, and
// Links is left.
func LinkName(conn *netlink.Conn, index int) (string, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return "", err
	}
	request, err := unix.NewIfreq("")
	if err != nil {
		return "", err
	}
	request.SetUint32(uint32(index)) // ifr_ifindex
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.IoctlIfreq(int(fd), unix.SIOCGIFNAME, request) }); err != nil {
		return "", err
	}
	if failed != nil {
		return "", failed
	}
	return strings.ToValidUTF8(request.Name(), "_"), nil
}

// ParseLinks reads the interface names of an RTM_GETLINK dump, by index. A
// message that cannot be read is left out and named in the error.
func ParseLinks(msgs []netlink.Message) (map[int]string, error) {
	names := make(map[int]string, len(msgs))
	var first error
	for i := range msgs {
		if msgs[i].Header.Type != unix.RTM_NEWLINK {
			continue
		}
		index, name, err := parseLinkName(msgs[i].Data)
		if err != nil {
			if first == nil {
				first = fmt.Errorf("message %d: %w", i, err)
			}
			continue
		}
		names[index] = name
	}
	return names, first
}

// parseLinkName walks to IFLA_IFNAME by hand: a link carries some forty attributes
// (1.5 KB) of which the first is wanted, and a decoder would copy them all.
func parseLinkName(b []byte) (index int, name string, err error) {
	if len(b) < unix.SizeofIfInfomsg {
		return 0, "", fmt.Errorf("struct ifinfomsg: %w", errTruncated)
	}
	index = int(int32(binary.NativeEndian.Uint32(b[4:])))
	b = b[unix.SizeofIfInfomsg:]
	for len(b) >= unix.SizeofRtAttr {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofRtAttr || size > len(b) {
			return 0, "", fmt.Errorf("attribute of interface %d: %w", index, errTruncated)
		}
		if binary.NativeEndian.Uint16(b[2:])&^(netlink.Nested|netlink.NetByteOrder) == unix.IFLA_IFNAME {
			value, _, _ := bytes.Cut(b[unix.SizeofRtAttr:size], []byte{0})
			return index, strings.ToValidUTF8(string(value), "_"), nil
		}
		b = b[min(len(b), (size+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1)):]
	}
	return 0, "", fmt.Errorf("interface %d has no IFLA_IFNAME", index)
}
