package nldev

import (
	"errors"

	"github.com/mdlayher/netlink"
)

// Counter is a hardware counter of a port. Its name is the driver's.
type Counter struct {
	Name  string
	Value uint64
}

// PortCounters are the counters of one port, in the driver's order.
type PortCounters struct {
	Device   Handle
	Port     uint32
	Counters []Counter
}

// ParseCounters reads the answer to STAT_GET for one port.
func ParseCounters(msgs []netlink.Message) (PortCounters, error) {
	var pc PortCounters
	if len(msgs) != 1 {
		return pc, errors.New("not one message")
	}
	err := table(msgs, attrHWCounters, attrHWCounterEntry,
		func(ad *netlink.AttributeDecoder) {
			if ad.Type() == attrPortIndex {
				pc.Port = ad.Uint32()
			}
		},
		func(device Handle, b []byte) error {
			c, err := parseCounter(b)
			if err == nil {
				pc.Counters = append(pc.Counters, c)
			}
			pc.Device = device
			return err
		})
	return pc, err
}

func parseCounter(b []byte) (Counter, error) {
	var c Counter
	valued := false
	err := attributes(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case attrHWCounterName:
			c.Name = text(ad)
		case attrHWCounterValue:
			c.Value, valued = ad.Uint64(), true
		}
	})
	switch {
	case err != nil:
		return c, err
	case c.Name == "":
		return c, errors.New("the counter's name is missing")
	case !valued:
		return c, errors.New("the value of counter " + c.Name + " is missing")
	}
	return c, nil
}
