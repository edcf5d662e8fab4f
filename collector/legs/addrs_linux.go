package legs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"grayfail/collector/netns"
	"grayfail/event"
)

// addressesFor is how long addresses are believed before they are read again.
const addressesFor = int64(10 * time.Second)

// AddressReader reads which netdev holds which local address (rtnetlink
// RTM_GETADDR), for Table.Update. Safe for concurrent use.
type AddressReader struct {
	dial func(netns.Namespace) (*netlink.Conn, error)

	mu    sync.Mutex
	known map[uint32]addresses
}

type addresses struct {
	devices map[netip.Addr]string
	readNS  int64
}

// NewAddressReader returns a reader; nothing is opened before Read.
func NewAddressReader() *AddressReader {
	return &AddressReader{
		dial: func(ns netns.Namespace) (*netlink.Conn, error) {
			return netns.Dial(unix.NETLINK_ROUTE, ns)
		},
		known: make(map[uint32]addresses),
	}
}

// Read describes the given namespaces for Table.Update, with addresses at most
// ten seconds old. One whose addresses cannot be read is a problem and has
// none. complete says whether all sockets of a namespace were read, by inode
// (sockdiag's Collector.Complete); nil means that they were.
func (r *AddressReader) Read(nowNS int64, nss []netns.Namespace, complete func(inode uint32) bool) ([]NetnsInfo, []event.Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	infos := make([]NetnsInfo, 0, len(nss))
	var problems []event.Problem
	keep := make(map[uint32]addresses, len(nss))
	for _, ns := range nss {
		at, have := r.known[ns.Inode]
		if !have || nowNS < at.readNS || nowNS-at.readNS >= addressesFor {
			devices, err := r.read(ns)
			if err == nil {
				at = addresses{devices, nowNS}
			} else if p, bad := netns.Problem(ns.Name, err); bad {
				problems = append(problems, p)
			}
		}
		if at.devices != nil {
			keep[ns.Inode] = at
		}
		infos = append(infos, NetnsInfo{
			Inode: ns.Inode, Name: ns.Name, Devices: at.devices,
			Unread: complete != nil && !complete(ns.Inode),
		})
	}
	r.known = keep
	return infos, problems
}

func (r *AddressReader) read(ns netns.Namespace) (map[netip.Addr]string, error) {
	conn, err := r.dial(ns)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	msgs, err := netns.Dump(conn, netlink.Message{
		Header: netlink.Header{Type: unix.RTM_GETADDR}, Data: make([]byte, unix.SizeofIfAddrmsg),
	})
	if err != nil {
		return nil, fmt.Errorf("RTM_GETADDR: %w", err)
	}
	links, err := netns.Links(conn)
	if err != nil {
		return nil, err
	}
	return ParseAddresses(msgs, links)
}

// ParseAddresses reads an RTM_GETADDR dump: the netdev of each local address,
// by the names of interfaces.
func ParseAddresses(msgs []netlink.Message, links map[int]string) (map[netip.Addr]string, error) {
	devices := make(map[netip.Addr]string, len(msgs))
	var errs []error
	for i := range msgs {
		if msgs[i].Header.Type != unix.RTM_NEWADDR {
			continue
		}
		index, addr, err := parseAddress(msgs[i].Data)
		if err != nil {
			errs = append(errs, fmt.Errorf("message %d: %w", i, err))
			continue
		}
		// Two devices may hold one link-local address: then it tells neither.
		if name, ok := links[index]; ok && addr.IsValid() {
			if other, twice := devices[addr]; twice && other != name {
				name = ""
			}
			devices[addr] = name
		}
	}
	return devices, errors.Join(errs...)
}

// parseAddress takes IFA_LOCAL, else IFA_ADDRESS: on point-to-point links the
// latter is the peer's (include/uapi/linux/if_addr.h).
func parseAddress(b []byte) (index int, addr netip.Addr, err error) {
	if len(b) < unix.SizeofIfAddrmsg {
		return 0, addr, errors.New("struct ifaddrmsg: truncated")
	}
	index = int(int32(binary.NativeEndian.Uint32(b[4:])))
	ad, err := netlink.NewAttributeDecoder(b[unix.SizeofIfAddrmsg:])
	if err != nil {
		return 0, addr, err
	}
	local := false
	for ad.Next() {
		kind := ad.Type()
		if kind != unix.IFA_LOCAL && (kind != unix.IFA_ADDRESS || local) {
			continue
		}
		ad.Do(func(b []byte) error {
			a, ok := netip.AddrFromSlice(b)
			if !ok {
				return fmt.Errorf("address of %d bytes", len(b))
			}
			addr, local = a.Unmap(), kind == unix.IFA_LOCAL
			return nil
		})
	}
	return index, addr, ad.Err()
}
