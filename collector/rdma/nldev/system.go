package nldev

import (
	"errors"

	"github.com/mdlayher/netlink"
)

// System is what holds for all RDMA devices.
type System struct {
	// SharedNetns: every network namespace sees every device, as is the
	// default. Otherwise a socket sees the devices of its namespace only.
	SharedNetns bool
}

// ParseSystem reads the answer to SYS_GET.
func ParseSystem(msgs []netlink.Message) (System, error) {
	var s System
	if len(msgs) != 1 {
		return s, errors.New("not one message")
	}
	told := false
	err := attributes(msgs[0].Data, func(ad *netlink.AttributeDecoder) {
		if ad.Type() == attrNetnsMode {
			s.SharedNetns, told = ad.Uint8() == 1, true
		}
	})
	if err == nil && !told {
		err = errors.New("SYS_ATTR_NETNS_MODE is missing")
	}
	return s, err
}

// Resources counts what a device's users have made, by the kernel's names:
// "qp", "cq", "mr", "pd", "cm_id", "ctx", "srq".
type Resources map[string]uint64

// ParseResources reads the answer to RES_GET for one device.
func ParseResources(msgs []netlink.Message) (Resources, error) {
	r := make(Resources)
	err := table(msgs, attrResSummary, attrResSummaryItem, ignore, func(_ Handle, b []byte) error {
		var name string
		var count uint64
		err := attributes(b, func(ad *netlink.AttributeDecoder) {
			switch ad.Type() {
			case attrResSummaryName:
				name = text(ad)
			case attrResSummaryCurr:
				count = ad.Uint64()
			}
		})
		if err == nil && name == "" {
			err = errors.New("RES_SUMMARY_ENTRY_NAME is missing")
		}
		if err == nil {
			r[name] = count
		}
		return err
	})
	return r, err
}
