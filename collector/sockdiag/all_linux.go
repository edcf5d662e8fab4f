package sockdiag

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"grayfail/collector/netns"
	"grayfail/event"
)

// Survey reads all connections, whatever their ports: who looks for legs that
// nobody named a port of needs it. It costs a dump of every connection of the
// host, so that it is to be taken every few seconds at most.
type Survey struct {
	c *Collector
}

// NewSurvey returns a Survey; nothing is opened before Collect.
func NewSurvey(opts Options) *Survey {
	opts.MaxSockets = cmp.Or(opts.MaxSockets, 65536)
	return &Survey{New(opts)}
}

// Close closes the socket in the own namespace.
func (s *Survey) Close() error { return s.c.Close() }

// Collect reads the established connections of the namespaces with their
// roles, and with their owners where those are asked for. What one namespace
// could not give is a problem and loses nothing of the others.
func (s *Survey) Collect(nowNS int64, nss []netns.Namespace, owners bool) ([]event.TCPSocket, []event.Problem) {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	var r reading
	for _, ns := range nss {
		if err := c.survey(nowNS, ns, &r); err != nil {
			if p, bad := problem(ns, err); bad {
				r.problems = append(r.problems, p)
			}
		}
	}
	if r.overflow > 0 {
		r.problems = append(r.problems, event.Problem{Reason: ReasonOverflow,
			Detail: fmt.Sprintf("%d connections beyond the first %d are not looked at for legs", r.overflow, c.max)})
	}
	if owners {
		c.name(nowNS, &r)
	}
	return r.sockets, r.problems
}

// surveyStates are ESTABLISHED and LISTEN.
const surveyStates = 1<<event.TCPEstablished | 1<<event.TCPListen

// newSurvey asks for all ports: no bytecode.
func newSurvey() request {
	head := make([]byte, sizeofRequest)
	head[1] = unix.IPPROTO_TCP
	head[2] = 1 << (attrInfo - 1) // idiag_ext
	binary.NativeEndian.PutUint32(head[4:], surveyStates)
	return request{data: head}
}

func (c *Collector) survey(nowNS int64, ns netns.Namespace, r *reading) error {
	conn, err := c.conns.Get(ns)
	if err != nil {
		return err
	}
	var all []Socket
	var errs []error
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		found, err := newSurvey().dump(conn, family)
		all = append(all, found...)
		errs = append(errs, err)
	}
	err = errors.Join(errs...)
	c.conns.Put(ns, conn, err)
	listening := make(map[uint16]bool)
	for i := range all {
		if all[i].State == event.TCPListen {
			listening[all[i].Flow.Local.Port()] = true
		}
	}
	for i := range all {
		s := &all[i]
		role, known := surveyRole(s, listening)
		if !known {
			continue
		}
		if len(r.sockets) >= c.max {
			r.overflow++
			continue
		}
		out := s.TCPSocket
		out.TimeNS, out.Flow.NetnsInode, out.Flow.Role = nowNS, ns.Inode, role
		r.sockets = append(r.sockets, out)
	}
	return err
}

// surveyRole tells who opened a connection. While data is outstanding and
// nobody listens on its port this cannot be told: the next survey may.
func surveyRole(s *Socket, listening map[uint16]bool) (role event.Role, known bool) {
	switch {
	case s.State != event.TCPEstablished || !s.HasInfo:
		return 0, false
	case listening[s.Flow.Local.Port()]:
		return event.RoleServer, true
	case opened(s):
		return event.RoleClient, true
	case s.InfoSize >= offBytesRetrans+8 && s.UnackedSegments == 0 && s.NotSent == 0:
		return event.RoleServer, true
	}
	return 0, false
}
