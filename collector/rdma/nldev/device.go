package nldev

import (
	"errors"

	"github.com/mdlayher/netlink"
)

// Handle names a device. The index stays with the device until it is removed;
// the name may change.
type Handle struct {
	Index uint32
	Name  string // "mlx5_0"
}

// Device is an RDMA device.
type Device struct {
	Handle
	Ports uint32 // how many; they are counted from 1
	// Firmware is "" for devices without.
	Firmware               string
	NodeGUID, SysImageGUID uint64
	NodeType               NodeType
	// Protocol is "ib", "roce", "iw", "opa" or "usnic": that of the FIRST port.
	// A card may run another on its second; ports/N/link_layer in sysfs tells.
	Protocol string
}

// NodeType is enum rdma_node_type (include/rdma/ib_verbs.h).
type NodeType uint8

// Node types that carry queue pairs of applications.
const (
	NodeCA   NodeType = 1 // channel adapter: InfiniBand or RoCE
	NodeRNIC NodeType = 4 // iWARP
)

// ParseDevices reads the answer to GET, a dump or not.
func ParseDevices(msgs []netlink.Message) ([]Device, error) {
	devices := make([]Device, 0, len(msgs))
	var errs entryErrors
	for i := range msgs {
		d, err := parseDevice(msgs[i].Data)
		if err != nil {
			errs.add(i, 0, err)
			continue
		}
		devices = append(devices, d)
	}
	return devices, errs.err()
}

func parseDevice(b []byte) (d Device, err error) {
	var id identity
	err = attributes(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case attrPortIndex:
			d.Ports = ad.Uint32() // here it is the number of ports
		case attrFWVersion:
			d.Firmware = text(ad)
		case attrNodeGUID:
			d.NodeGUID = ad.Uint64()
		case attrSysImageGUID:
			d.SysImageGUID = ad.Uint64()
		case attrDevNodeType:
			d.NodeType = NodeType(ad.Uint8())
		case attrDevProtocol:
			d.Protocol = text(ad)
		default:
			id.take(ad)
		}
	})
	d.Handle = id.Handle
	return d, errors.Join(err, id.err())
}
