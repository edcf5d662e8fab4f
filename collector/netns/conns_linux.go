package netns

import "github.com/mdlayher/netlink"

// Conns hands out netlink sockets. It keeps the one in our own namespace;
// those in others live from Get to Put, so that a stopped container can go
// away. Not safe for concurrent use.
type Conns struct {
	dial func(Namespace) (*netlink.Conn, error)
	own  *netlink.Conn
}

// NewConns returns Conns of a family (unix.NETLINK_ROUTE, ...); nothing is
// opened before Get. A dial that is not nil opens them instead: tests put a
// fake socket there.
func NewConns(family int, dial func(Namespace) (*netlink.Conn, error)) *Conns {
	if dial == nil {
		dial = func(ns Namespace) (*netlink.Conn, error) { return Dial(family, ns) }
	}
	return &Conns{dial: dial}
}

// Get returns a socket in ns, to be given to Put after one conversation.
func (c *Conns) Get(ns Namespace) (*netlink.Conn, error) {
	if ns.Own() && c.own != nil {
		return c.own, nil
	}
	conn, err := c.dial(ns)
	if err == nil && ns.Own() {
		c.own = conn
	}
	return conn, err
}

// Put takes a socket back, with what the conversation came to. It closes it
// unless it is our own and in order: after an error the rest of an answer may
// still be waiting in it.
func (c *Conns) Put(ns Namespace, conn *netlink.Conn, err error) {
	if ns.Own() && err == nil {
		return
	}
	if ns.Own() {
		c.own = nil
	}
	_ = conn.Close() // nothing was written that could be lost
}

// Close closes the socket that is kept.
func (c *Conns) Close() error {
	if c.own == nil {
		return nil
	}
	err := c.own.Close()
	c.own = nil
	return err
}
