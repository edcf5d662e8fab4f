package nldev

import (
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// readTimeout ends a conversation with a kernel that stays silent: old ones
// do not answer a request for something that they can only dump, or only
// cannot dump (rdma_nl_rcv_msg).
const readTimeout = 5 * time.Second

// Config of Dial.
type Config struct {
	// NetNS is a file descriptor of the network namespace to ask in; 0 is our
	// own. It decides which netdevs have a name and, where namespaces do not
	// share devices (System), which devices there are.
	NetNS int
}

// Dial opens NETLINK_RDMA. A nil Config is the zero one.
func Dial(cfg *Config) (*Client, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	// 32 KiB is the most a dump puts into one datagram (net/netlink/
	// af_netlink.c, netlink_dump), and a buffer of that size makes it do so.
	conn, err := netlink.Dial(unix.NETLINK_RDMA, &netlink.Config{NetNS: cfg.NetNS, MessageBufferSize: 32 << 10})
	if err != nil {
		return nil, &Error{Op: opConnecting, Err: err}
	}
	return NewClient(conn), nil
}
