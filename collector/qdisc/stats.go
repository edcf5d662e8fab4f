package qdisc

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"

	"grayfail/event"
)

// Attributes inside TCA_STATS2 (include/uapi/linux/gen_stats.h).
const (
	statsBasic = 1 // struct gnet_stats_basic: u64 bytes, u32 packets
	statsQueue = 3 // struct gnet_stats_queue: u32 qlen, backlog, drops, requeues, overlimits
	statsPkt64 = 8 // u64 packets, present only past 2^32 (since 5.5)
)

// errTruncated: a structure of fixed size is cut off.
var errTruncated = errors.New("truncated")

// counters gathers the statistics of one qdisc, in whatever order its
// attributes come.
type counters struct {
	bytes, packets, packets64 uint64
	queue                     [5]uint32 // qlen, backlog, drops, requeues, overlimits
	has64, hasNest            bool
	old                       event.Qdisc // from TCA_STATS
}

// nest reads TCA_STATS2.
func (c *counters) nest(ad *netlink.AttributeDecoder) error {
	c.hasNest = true
	for ad.Next() {
		switch ad.Type() {
		case statsBasic:
			ad.Do(func(b []byte) error {
				if len(b) < 12 {
					return fmt.Errorf("TCA_STATS_BASIC: %w", errTruncated)
				}
				c.bytes = binary.NativeEndian.Uint64(b)
				c.packets = uint64(binary.NativeEndian.Uint32(b[8:]))
				return nil
			})
		case statsPkt64:
			c.packets64, c.has64 = ad.Uint64(), true
		case statsQueue:
			ad.Do(func(b []byte) error {
				if len(b) < 20 {
					return fmt.Errorf("TCA_STATS_QUEUE: %w", errTruncated)
				}
				for i := range c.queue {
					c.queue[i] = binary.NativeEndian.Uint32(b[4*i:])
				}
				return nil
			})
		}
	}
	return nil // errors of ad are looked at by its parent
}

// legacy reads TCA_STATS, struct tc_stats (include/uapi/linux/pkt_sched.h):
// what kernels before 2.6.10 have instead of TCA_STATS2 and later ones beside
// it, without requeues and with 32-bit packets.
func (c *counters) legacy(b []byte) error {
	if len(b) < 36 {
		return fmt.Errorf("TCA_STATS: %w", errTruncated)
	}
	u32 := func(at int) uint64 { return uint64(binary.NativeEndian.Uint32(b[at:])) }
	c.old = event.Qdisc{
		Bytes: binary.NativeEndian.Uint64(b), Packets: u32(8), Drops: u32(12), Overlimits: u32(16),
		QueuePackets: u32(28), BacklogBytes: u32(32),
	}
	return nil
}

func (c *counters) qdisc() event.Qdisc {
	if !c.hasNest {
		return c.old
	}
	if c.has64 {
		c.packets = c.packets64
	}
	return event.Qdisc{
		Bytes: c.bytes, Packets: c.packets,
		QueuePackets: uint64(c.queue[0]), BacklogBytes: uint64(c.queue[1]),
		Drops: uint64(c.queue[2]), Requeues: uint64(c.queue[3]), Overlimits: uint64(c.queue[4]),
	}
}
