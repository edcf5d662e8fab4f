package nldev

import (
	"errors"
	"strconv"

	"github.com/mdlayher/netlink"
)

// Port is a port of a device.
type Port struct {
	Device Handle
	Port   uint32
	State  PortState
	// PhysState is enum ib_port_phys_state: 3 disabled, 5 up.
	PhysState uint8
	// LID and SubnetPrefix are 0 unless the link layer is InfiniBand.
	LID          uint32
	SubnetPrefix uint64
	// NetdevIndex and Netdev are 0 and "" when the port has no netdev, or one
	// in another network namespace than the socket's; sysfs names that one
	// too (gid_attrs/ndevs).
	NetdevIndex uint32
	Netdev      string
}

// PortState is enum ib_port_state (include/rdma/ib_verbs.h).
type PortState uint8

// Port states. PortNop also stands for one that the kernel did not tell.
const (
	PortNop    PortState = 0
	PortDown   PortState = 1
	PortInit   PortState = 2
	PortArmed  PortState = 3
	PortActive PortState = 4
)

// String is the name that sysfs prints behind the number.
func (s PortState) String() string {
	names := [...]string{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}
	if int(s) < len(names) {
		return names[s]
	}
	return strconv.Itoa(int(s))
}

// ParsePorts reads the answer to PORT_GET. The answer for a single port has
// the message type of GET (nldev_port_get_doit), so types are not looked at.
func ParsePorts(msgs []netlink.Message) ([]Port, error) {
	ports := make([]Port, 0, len(msgs))
	var errs entryErrors
	for i := range msgs {
		p, err := parsePort(msgs[i].Data)
		if err != nil {
			errs.add(i, 0, err)
			continue
		}
		ports = append(ports, p)
	}
	return ports, errs.err()
}

func parsePort(b []byte) (p Port, err error) {
	var id identity
	err = attributes(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case attrPortIndex:
			p.Port = ad.Uint32()
		case attrPortState:
			p.State = PortState(ad.Uint8())
		case attrPortPhysState:
			p.PhysState = ad.Uint8()
		case attrLID:
			p.LID = ad.Uint32()
		case attrSubnetPrefix:
			p.SubnetPrefix = ad.Uint64()
		case attrNetdevIndex:
			p.NetdevIndex = ad.Uint32()
		case attrNetdevName:
			p.Netdev = text(ad)
		default:
			id.take(ad)
		}
	})
	p.Device = id.Handle
	if p.Port == 0 {
		err = errors.Join(err, errors.New("PORT_INDEX is missing"))
	}
	return p, errors.Join(err, id.err())
}
