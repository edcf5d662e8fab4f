package nldev

import (
	"errors"

	"github.com/mdlayher/netlink"
)

// MemoryRegion is memory that is registered with a device. Its keys are left
// out: the kernel gives them to holders of CAP_NET_ADMIN only, and whoever
// knows one can name the memory.
type MemoryRegion struct {
	Device Handle
	MRN    uint32
	Bytes  uint64
	PDN    uint32 // protection domain, as in QueuePair
	// PID and KernelName as in QueuePair.
	PID        uint32
	KernelName string
}

// ParseMemoryRegions reads the answer to RES_MR_GET for one device; one that
// is listed twice is returned once.
func ParseMemoryRegions(msgs []netlink.Message) ([]MemoryRegion, error) {
	var regions []MemoryRegion
	at := make(map[uint32]int)
	err := table(msgs, attrResMR, attrResMREntry, ignore, func(device Handle, b []byte) error {
		m, err := parseMemoryRegion(b)
		if err != nil {
			return err
		}
		m.Device = device
		if i, twice := at[m.MRN]; twice {
			regions[i] = m
			return nil
		}
		at[m.MRN] = len(regions)
		regions = append(regions, m)
		return nil
	})
	return regions, err
}

func parseMemoryRegion(b []byte) (MemoryRegion, error) {
	var m MemoryRegion
	numbered := false
	err := attributes(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case attrResMRN:
			m.MRN, numbered = ad.Uint32(), true
		case attrResMRLen:
			m.Bytes = ad.Uint64()
		case attrResPDN:
			m.PDN = ad.Uint32()
		case attrResPID:
			m.PID = ad.Uint32()
		case attrResKernName:
			m.KernelName = text(ad)
		}
	})
	if err == nil && !numbered {
		err = errors.New("RES_MRN is missing")
	}
	return m, err
}
