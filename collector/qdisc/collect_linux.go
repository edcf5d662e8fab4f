package qdisc

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"grayfail/collector/netns"
	"grayfail/event"
)

// Options of a Collector. The zero value is ready to use.
type Options struct {
	// dial opens rtnetlink in a namespace; tests put a fake socket here.
	dial func(netns.Namespace) (*netlink.Conn, error)
}

// Collector reads qdiscs. Safe for concurrent use.
type Collector struct {
	mu    sync.Mutex
	conns *netns.Conns
}

// New returns a Collector; nothing is opened before Collect.
func New(opts Options) *Collector {
	return &Collector{conns: netns.NewConns(unix.NETLINK_ROUTE, opts.dial)}
}

// Close closes the socket in the own namespace.
func (c *Collector) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns.Close()
}

// Collect reads every qdisc of the given namespaces, stamped nowNS. What one
// namespace could not give is a problem and loses nothing of the others; a
// namespace that has ended is left out. The error is not nil when nothing
// could be read at all.
func (c *Collector) Collect(nowNS int64, nss []netns.Namespace) ([]event.Qdisc, []event.Problem, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var (
		all      []event.Qdisc
		problems []event.Problem
		errs     []error
		read     int
	)
	for _, ns := range nss {
		qdiscs, err := c.collect(nowNS, ns)
		all = append(all, qdiscs...)
		if err == nil {
			read++
			continue
		}
		if p, bad := netns.Problem(ns.Name, err); bad {
			problems = append(problems, p)
			errs = append(errs, err)
		}
		if len(qdiscs) > 0 {
			read++
		}
	}
	if read == 0 && len(errs) > 0 {
		return nil, problems, fmt.Errorf("qdisc: %w", errors.Join(errs...))
	}
	return all, problems, nil
}

// collect reads one namespace. With an error, what was read is returned too.
func (c *Collector) collect(nowNS int64, ns netns.Namespace) ([]event.Qdisc, error) {
	conn, err := c.conns.Get(ns)
	if err != nil {
		return nil, err
	}
	entries, dumpErr := dumpQdiscs(conn)
	// Names come after the qdiscs: an interface that is new meanwhile has one.
	names := linkNames{conn: conn, known: make(map[int]string)}
	out := make([]event.Qdisc, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		name, gone := names.of(e.Ifindex)
		if gone {
			continue // the interface vanished after its qdiscs were listed
		}
		if name == "" {
			name = "if" + strconv.Itoa(e.Ifindex)
		}
		q := e.Qdisc
		q.TimeNS, q.Netns, q.Device = nowNS, ns.Name, name
		out = append(out, q)
	}
	err = errors.Join(dumpErr, names.err)
	c.conns.Put(ns, conn, err)
	return out, err
}

// dumpQdiscs asks for all qdiscs. TCA_DUMP_INVISIBLE (since 4.12) adds the
// default ones that a classful qdisc makes for its classes: with them an
// operator sees in which class of an htb the packets were dropped; without
// them that counter is nowhere in the dump.
func dumpQdiscs(conn *netlink.Conn) ([]Entry, error) {
	req, err := qdiscRequest()
	if err != nil {
		return nil, err
	}
	msgs, err := netns.Dump(conn, netlink.Message{
		Header: netlink.Header{Type: unix.RTM_GETQDISC}, Data: req,
	})
	if err != nil && msgs == nil {
		return nil, fmt.Errorf("RTM_GETQDISC: %w", err)
	}
	entries, parseErr := Parse(msgs)
	if err = errors.Join(err, parseErr); err != nil {
		err = fmt.Errorf("RTM_GETQDISC: %w", err)
	}
	return entries, err
}

// qdiscRequest is struct tcmsg for all interfaces.
func qdiscRequest() ([]byte, error) {
	ae := netlink.NewAttributeEncoder()
	ae.Flag(unix.TCA_DUMP_INVISIBLE, true)
	attrs, err := ae.Encode()
	return append(make([]byte, sizeofTcmsg), attrs...), err
}
