package sockdiag

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"grayfail/collector/netns"
	"grayfail/event"
)

// Reasons of problems beside those of package netns.
const (
	ReasonNotSupported = "not_supported"
	ReasonOverflow     = "sockets_overflow"
	ReasonPorts        = "too_many_ports"
)

// Options of a Collector. The zero value is ready to use.
type Options struct {
	// MaxSockets bounds one reading, default 16384; what does not fit is a
	// problem with its count.
	MaxSockets int

	proc string                                       // tests
	dial func(netns.Namespace) (*netlink.Conn, error) // tests
}

// Collector reads the sockets of watched ports. Safe for concurrent use.
type Collector struct {
	max int

	mu       sync.Mutex
	conns    *netns.Conns
	owners   *owners
	complete map[uint32]bool
}

// New returns a Collector; nothing is opened before Collect.
func New(opts Options) *Collector {
	return &Collector{
		max:    cmp.Or(opts.MaxSockets, 16384),
		conns:  netns.NewConns(unix.NETLINK_SOCK_DIAG, opts.dial),
		owners: newOwners(cmp.Or(opts.proc, "/proc")),
	}
}

// Close closes the socket in the own namespace.
func (c *Collector) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns.Close()
}

// Complete says whether the last Collect read all sockets of a namespace: only
// then does a missing socket mean that it is gone.
func (c *Collector) Complete(inode uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.complete[inode]
}

// Collect reads the sockets of the given namespaces with one of the ports as
// local or peer port, in any state but LISTEN, stamped nowNS. What one
// namespace could not give is a problem and loses nothing of the others; a
// namespace that has ended is left out. The error is not nil when nothing
// could be read at all.
func (c *Collector) Collect(nowNS int64, nss []netns.Namespace, ports []uint16) ([]event.TCPSocket, []event.Problem, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.complete = make(map[uint32]bool, len(nss))
	var r reading
	if len(ports) > maxPorts {
		r.problems = append(r.problems, event.Problem{Reason: ReasonPorts,
			Detail: fmt.Sprintf("%d ports are watched, the kernel's filter has room for %d: the rest is left out", len(ports), maxPorts)})
		ports = ports[:maxPorts]
	}
	if len(ports) == 0 {
		for _, ns := range nss {
			c.complete[ns.Inode] = true
		}
		return nil, r.problems, nil
	}
	request := newRequest(ports)
	var errs []error
	read := 0
	for _, ns := range nss {
		before, left := len(r.sockets), r.overflow
		err := c.collect(nowNS, ns, request, &r)
		if err == nil {
			c.complete[ns.Inode] = r.overflow == left
			read++
			continue
		}
		if p, bad := problem(ns, err); bad {
			r.problems = append(r.problems, p)
			errs = append(errs, err)
		}
		if len(r.sockets) > before {
			read++
		}
	}
	if read == 0 && len(errs) > 0 {
		return nil, r.problems, fmt.Errorf("sock_diag: %w", errors.Join(errs...))
	}
	c.name(nowNS, &r)
	return r.sockets, append(r.problems, r.limits(c.max)...), nil
}

// problem adds what only sock_diag knows: ENOENT means that the kernel has no
// handler for TCP (net/core/sock_diag.c loads module tcp_diag on demand).
func problem(ns netns.Namespace, err error) (event.Problem, bool) {
	if errors.Is(err, unix.ENOENT) && !errors.Is(err, netns.ErrVanished) {
		return event.Problem{Reason: ReasonNotSupported,
			Detail: fmt.Sprintf("%v: sock_diag for TCP is not in this kernel (module tcp_diag): %v", ns, err)}, true
	}
	return netns.Problem(ns.Name, err)
}

// collect reads one namespace into r. With an error, what was read is kept.
func (c *Collector) collect(nowNS int64, ns netns.Namespace, req request, r *reading) error {
	conn, err := c.conns.Get(ns)
	if err != nil {
		return err
	}
	var sockets []Socket
	var errs []error
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		found, err := req.dump(conn, family)
		sockets = append(sockets, found...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	err = errors.Join(errs...)
	c.conns.Put(ns, conn, err)
	r.add(nowNS, ns, sockets, req.ports, c.max)
	return err
}

// name fills in the owners.
func (c *Collector) name(nowNS int64, r *reading) {
	inodes := make([]uint32, 0, len(r.sockets))
	for i := range r.sockets {
		if inode := r.sockets[i].Inode; inode != 0 {
			inodes = append(inodes, inode)
		}
	}
	c.owners.resolve(nowNS, inodes)
	for i := range r.sockets {
		s := &r.sockets[i]
		if own, ok := c.owners.byInode[s.Inode]; ok {
			s.Flow.PID, s.Flow.Comm = own.pid, own.comm
		}
	}
	mayTrace := netns.HasPtrace()
	if n := c.owners.hidden(mayTrace); n > 0 {
		why := "that needs CAP_SYS_PTRACE"
		if mayTrace {
			why = "though CAP_SYS_PTRACE is there (a security module or a user namespace forbids it)"
		}
		r.problems = append(r.problems, event.Problem{Reason: netns.ReasonNoPermission, Detail: fmt.Sprintf(
			"the owners of %d of %d sockets are not known: /proc/PID/fd of %d processes cannot be read, %s",
			n, len(inodes), c.owners.denied, why)})
	}
}

// reading is what one Collect gathers.
type reading struct {
	sockets  []event.TCPSocket
	problems []event.Problem
	overflow int
	infoSize int // smallest tcp_info seen, 0 before the first
}

func (r *reading) add(nowNS int64, ns netns.Namespace, sockets []Socket, ports []uint16, limit int) {
	roles := roles{make(map[uint16]bool, len(ports)), make(map[uint16]bool)}
	for _, port := range ports {
		roles.watched[port] = true
	}
	for i := range sockets {
		if sockets[i].State == event.TCPListen {
			roles.listening[sockets[i].Flow.Local.Port()] = true
		}
	}
	r.sockets = slices.Grow(r.sockets, min(len(sockets), limit-len(r.sockets)))
	for i := range sockets {
		s := &sockets[i]
		role, ours := roles.role(s)
		if !ours {
			continue
		}
		if len(r.sockets) >= limit {
			r.overflow++
			continue
		}
		if s.HasInfo && (r.infoSize == 0 || s.InfoSize < r.infoSize) {
			r.infoSize = s.InfoSize
		}
		out := s.TCPSocket
		out.TimeNS, out.Flow.NetnsInode, out.Flow.Role = nowNS, ns.Inode, role
		r.sockets = append(r.sockets, out)
	}
}

// limits says what is missing from all readings alike.
func (r *reading) limits(limit int) (problems []event.Problem) {
	if r.overflow > 0 {
		problems = append(problems, event.Problem{Reason: ReasonOverflow,
			Detail: fmt.Sprintf("%d sockets beyond the first %d are left out", r.overflow, limit)})
	}
	if r.infoSize != 0 && r.infoSize < sizeofFull {
		problems = append(problems, event.Problem{Reason: ReasonNotSupported, Detail: fmt.Sprintf(
			"this kernel's struct tcp_info ends after %d bytes of %d: %s", r.infoSize, sizeofFull, missing(r.infoSize))})
	}
	return problems
}

// missing names the fields that a short struct tcp_info lacks.
func missing(size int) string {
	switch {
	case size < offBytesReceived+8:
		return "no payload bytes, minimum RTT, DSACKs or out-of-order segments"
	case size < offMinRTT+4:
		return "no minimum RTT, DSACKs or out-of-order segments"
	case size < offDSACKs+4:
		return "no DSACKs or out-of-order segments"
	}
	return "no out-of-order segments"
}
