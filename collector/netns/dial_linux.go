package netns

import (
	"fmt"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// dumpTries bounds the repetition of inconsistent dumps.
const dumpTries = 4

// readTimeout ends a conversation with a kernel that stays silent.
const readTimeout = 5 * time.Second

// Dial opens a netlink socket of a family (unix.NETLINK_ROUTE, ...) inside ns.
func Dial(family int, ns Namespace) (*netlink.Conn, error) {
	h, err := ns.Open()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	// 32 KiB is the most a dump puts into one datagram (af_netlink.c,
	// netlink_dump: SKB_WITH_OVERHEAD(32768)); a buffer of that size makes
	// the kernel use it, so that 1,000 entries take a tenth of the calls.
	c, err := netlink.Dial(family, &netlink.Config{NetNS: h.FD(), MessageBufferSize: 32 << 10})
	if err != nil {
		return nil, &Error{ns.Name, err}
	}
	return c, nil
}

// Dump sends req and returns all messages of the answer. A dump that the
// kernel marks as inconsistent is repeated; after the last try its messages
// are returned along with ErrInterrupted. After any other error the
// connection must be closed: the rest of an answer may be waiting in it.
func Dump(c *netlink.Conn, req netlink.Message) ([]netlink.Message, error) {
	req.Header.Flags |= netlink.Request | netlink.Dump
	for try := 1; ; try++ {
		// A fake connection knows no deadlines and does not block; what else
		// could be wrong here (it is closed) is what Execute reports.
		_ = c.SetDeadline(time.Now().Add(readTimeout))
		msgs, err := c.Execute(req)
		if err != nil {
			return nil, err
		}
		switch {
		case !interrupted(msgs):
			return msgs, nil
		case try == dumpTries:
			return msgs, fmt.Errorf("%d tries: %w", try, ErrInterrupted)
		}
	}
}

func interrupted(msgs []netlink.Message) bool {
	for i := range msgs {
		if msgs[i].Header.Flags&unix.NLM_F_DUMP_INTR != 0 {
			return true
		}
	}
	return false
}
