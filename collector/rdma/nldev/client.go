package nldev

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Client asks the kernel. One question at a time; not for concurrent use.
// After an error for which Broken says so it must be closed.
type Client struct {
	conn   *netlink.Conn
	broken bool
}

// NewClient talks over a connection that was opened elsewhere: in another
// namespace, or to a test. Close closes it.
func NewClient(conn *netlink.Conn) *Client { return &Client{conn: conn} }

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Broken says that an answer was cut off, so that the rest of it may still
// arrive. Every further question fails.
func (c *Client) Broken() bool { return c.broken }

// Devices lists all RDMA devices.
func (c *Client) Devices() ([]Device, error) {
	msgs, err := c.ask(OpGet, netlink.Dump, nil)
	return answer(OpGet, nil, msgs, err, ParseDevices)
}

// System tells what holds for all devices.
func (c *Client) System() (System, error) {
	msgs, err := c.ask(OpSysGet, 0, nil)
	if errors.Is(err, unix.EINVAL) {
		err = &Error{Op: OpSysGet, Err: err, kind: errors.ErrUnsupported}
	}
	return answer(OpSysGet, nil, msgs, err, ParseSystem)
}

// Ports lists the ports of a device, each that can be read: with an error, the
// others are returned beside it. The kernel ends its list at the first port
// that it cannot query and does not say so (nldev_port_get_dumpit), so what is
// missing is asked for by number.
func (c *Client) Ports(d Device) ([]Port, error) {
	about := &subject{device: d.Index}
	msgs, err := c.ask(OpPortGet, netlink.Dump, about)
	ports, err := answer(OpPortGet, about, msgs, c.explain(OpPortGet, about, err), ParsePorts)
	if err != nil && (c.broken || errors.Is(err, fs.ErrNotExist)) {
		return ports, err
	}
	listed := make(map[uint32]bool, len(ports))
	for _, p := range ports {
		listed[p.Port] = true
	}
	errs := []error{err}
	for n := uint32(1); n <= min(d.Ports, maxPorts) && !c.broken; n++ {
		if listed[n] {
			continue
		}
		one := &subject{device: d.Index, port: n}
		msgs, err := c.ask(OpPortGet, 0, one)
		got, err := answer(OpPortGet, one, msgs, c.explain(OpPortGet, one, err), ParsePorts)
		ports = append(ports, got...)
		errs = append(errs, err)
	}
	return ports, join(errs)
}

// maxPorts bounds the questions about ports: an IB port has 8 bits.
const maxPorts = 255

// QueuePairs lists the queue pairs of a device, on all its ports and on none.
// With an error, those that were listed before it are returned beside it: one
// queue pair that its driver cannot query ends the kernel's list.
//
// The kernel asks the driver about each queue pair. Where one was destroyed
// meanwhile, kernels before mid 2026 could crash (a use after free in
// ib_query_qp): do not call this more often than needed.
func (c *Client) QueuePairs(device uint32) ([]QueuePair, error) {
	about := &subject{device: device}
	msgs, err := c.ask(OpResQPGet, netlink.Dump, about)
	return answer(OpResQPGet, about, msgs, c.explain(OpResQPGet, about, err), ParseQueuePairs)
}

// MemoryRegions lists the registered memory of a device.
func (c *Client) MemoryRegions(device uint32) ([]MemoryRegion, error) {
	about := &subject{device: device}
	msgs, err := c.ask(OpResMRGet, netlink.Dump, about)
	return answer(OpResMRGet, about, msgs, c.explain(OpResMRGet, about, err), ParseMemoryRegions)
}

// Resources counts what the users of a device have made.
func (c *Client) Resources(device uint32) (Resources, error) {
	about := &subject{device: device}
	msgs, err := c.ask(OpResGet, 0, about)
	return answer(OpResGet, about, msgs, c.explain(OpResGet, about, err), ParseResources)
}

// Counters reads the hardware counters of a port. errors.ErrUnsupported also
// stands for a driver that has none or failed to read them: the kernel answers
// EINVAL to all of it (stat_get_doit_default_counter).
func (c *Client) Counters(device, port uint32) (PortCounters, error) {
	about := &subject{device: device, port: port}
	msgs, err := c.ask(OpStatGet, 0, about)
	return answer(OpStatGet, about, msgs, c.explain(OpStatGet, about, err), ParseCounters)
}

// subject is what a question is about.
type subject struct{ device, port uint32 }

func (s *subject) attributes() ([]byte, error) {
	if s == nil {
		return nil, nil
	}
	ae := netlink.NewAttributeEncoder()
	ae.Uint32(attrDevIndex, s.device)
	if s.port != 0 {
		ae.Uint32(attrPortIndex, s.port)
	}
	return ae.Encode()
}

// ask sends a question and reads the answer. With an error, the messages that
// came before it are returned.
func (c *Client) ask(op Op, flags netlink.HeaderFlags, about *subject) ([]netlink.Message, error) {
	if c.broken {
		return nil, errBroken
	}
	data, err := about.attributes()
	if err != nil {
		return nil, err
	}
	// A fake connection knows no deadlines and does not block; what else could
	// be wrong with the socket is what sending reports.
	_ = c.conn.SetDeadline(time.Now().Add(readTimeout))
	req, err := c.conn.Send(netlink.Message{
		Header: netlink.Header{
			Type:  netlink.HeaderType(clientNLDEV<<10 | uint16(op)),
			Flags: netlink.Request | flags,
		},
		Data: data,
	})
	if err != nil {
		c.broken = true
		return nil, err
	}
	var msgs []netlink.Message
	for m, err := range c.conn.ReceiveIter() {
		if err != nil {
			c.broken = !complete(err)
			return msgs, err
		}
		msgs = append(msgs, m)
	}
	if err := netlink.Validate(req, msgs); err != nil {
		c.broken = true
		return nil, err
	}
	return msgs, nil
}

// complete says that an error came in a message: it ends the answer. One of a
// system call cuts it off.
func complete(err error) bool {
	var errno unix.Errno
	var call *os.SyscallError
	return errors.As(err, &errno) && !errors.As(err, &call)
}

var errBroken = errors.New("the connection has to be opened anew")

// answer parses what ask returned and makes errors into Errors.
func answer[T any](op Op, about *subject, msgs []netlink.Message, err error, parse func([]netlink.Message) (T, error)) (T, error) {
	var out T
	var errs []error
	if about == nil {
		about = &subject{}
	}
	wrap := func(err error) {
		var e *Error
		if err != nil && !errors.As(err, &e) {
			err = &Error{Op: op, Device: about.device, Port: about.port, Err: err}
		}
		errs = append(errs, err)
	}
	wrap(err)
	if err == nil || len(msgs) > 0 {
		var parseErr error
		out, parseErr = parse(msgs)
		wrap(parseErr)
	}
	return out, join(errs)
}

// explain finds out what EINVAL means: no such device, no such port or no such
// operation.
func (c *Client) explain(op Op, about *subject, err error) error {
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	e := &Error{Op: op, Device: about.device, Port: about.port, Err: err}
	devices, listErr := c.Devices()
	if listErr != nil {
		return e
	}
	for _, d := range devices {
		if d.Index != about.device {
			continue
		}
		switch {
		case about.port > d.Ports:
			e.kind = fs.ErrNotExist
		case op == OpStatGet:
			e.kind = errors.ErrUnsupported
		case op == OpResQPGet, op == OpResMRGet:
			// As old as RES_GET, which has no driver that could fail.
			if _, resErr := c.ask(OpResGet, 0, &subject{device: about.device}); errors.Is(resErr, unix.EINVAL) {
				e.kind = errors.ErrUnsupported
			}
		case op == OpResGet:
			e.kind = errors.ErrUnsupported
		}
		return e
	}
	e.kind = fs.ErrNotExist
	return e
}
