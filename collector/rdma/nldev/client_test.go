package nldev

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"
)

// kernel answers like one with two devices, the second of which fails in every
// way.
type kernel struct {
	t       *testing.T
	asked   []Op
	errnos  map[Op]unix.Errno
	devices [][]byte
	ports   func(device, port uint32) ([]byte, unix.Errno)
}

func (k *kernel) client() *Client {
	return NewClient(nltest.Dial(func(reqs []netlink.Message) ([]netlink.Message, error) {
		req := reqs[0]
		op := Op(req.Header.Type & 0x3ff)
		if req.Header.Type>>10 != clientNLDEV || req.Header.Flags&netlink.Request == 0 {
			k.t.Errorf("not a request to NLDEV: %+v", req.Header)
		}
		k.asked = append(k.asked, op)
		if errno := k.errnos[op]; errno != 0 {
			return refuse(reqs, errno)
		}
		isDump := req.Header.Flags&netlink.Dump == netlink.Dump
		var payloads [][]byte
		var device, port uint32
		if err := attributes(req.Data, func(ad *netlink.AttributeDecoder) {
			switch ad.Type() {
			case attrDevIndex:
				device = ad.Uint32()
			case attrPortIndex:
				port = ad.Uint32()
			}
		}); err != nil {
			k.t.Error(err)
		}
		switch op {
		case OpGet:
			payloads = k.devices
		case OpPortGet:
			if !isDump {
				b, errno := k.ports(device, port)
				if errno != 0 {
					return refuse(reqs, errno)
				}
				return []netlink.Message{{Header: req.Header, Data: b}}, nil
			}
			for p := uint32(1); ; p++ {
				b, errno := k.ports(device, p)
				if errno != 0 {
					break // the kernel ends its list without a word
				}
				payloads = append(payloads, b)
			}
		}
		msgs := make([]netlink.Message, 0, len(payloads)+1)
		for _, b := range payloads {
			msgs = append(msgs, netlink.Message{Header: req.Header, Data: b})
		}
		msgs = append(msgs, netlink.Message{Header: netlink.Header{
			Type: netlink.Done, Flags: netlink.Multi, Sequence: req.Header.Sequence, PID: req.Header.PID,
		}})
		for i := range msgs {
			msgs[i].Header.Flags = netlink.Multi
		}
		return msgs, nil
	}))
}

// refuse answers as the kernel does: the request's flags, which would mean
// something else in an answer, are not in it.
func refuse(reqs []netlink.Message, errno unix.Errno) ([]netlink.Message, error) {
	msgs, err := nltest.Error(int(errno), reqs)
	msgs[0].Header.Flags = 0
	return msgs, err
}

func payload(t *testing.T, encode func(ae *netlink.AttributeEncoder)) []byte {
	t.Helper()
	ae := netlink.NewAttributeEncoder()
	encode(ae)
	b, err := ae.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func devicePayload(t *testing.T, index uint32, name string, ports uint32) []byte {
	return payload(t, func(ae *netlink.AttributeEncoder) {
		ae.Uint32(attrDevIndex, index)
		ae.String(attrDevName, name)
		ae.Uint32(attrPortIndex, ports)
	})
}

func portPayload(t *testing.T, index uint32, name string, port uint32, state PortState) []byte {
	return payload(t, func(ae *netlink.AttributeEncoder) {
		ae.Uint32(attrDevIndex, index)
		ae.String(attrDevName, name)
		ae.Uint32(attrPortIndex, port)
		ae.Uint8(attrPortState, uint8(state))
	})
}

// A port that cannot be queried must not hide those behind it.
func TestPortsBehindABrokenOne(t *testing.T) {
	k := &kernel{t: t}
	k.ports = func(device, port uint32) ([]byte, unix.Errno) {
		switch {
		case device != 3:
			t.Errorf("asked for device %d", device)
		case port == 2:
			return nil, unix.EIO
		case port > 4:
			return nil, unix.EINVAL
		}
		return portPayload(t, 3, "quad0", port, PortActive), 0
	}
	c := k.client()
	ports, err := c.Ports(Device{Handle: Handle{3, "quad0"}, Ports: 4})
	var numbers []uint32
	for _, p := range ports {
		numbers = append(numbers, p.Port)
	}
	if !slices.Equal(numbers, []uint32{1, 3, 4}) {
		t.Errorf("ports %v", numbers)
	}
	var e *Error
	if !errors.As(err, &e) || e.Port != 2 || e.Device != 3 || !errors.Is(err, unix.EIO) {
		t.Errorf("error %v", err)
	}
	if c.Broken() {
		t.Error("broken")
	}
}

func TestErrors(t *testing.T) {
	const all = 6
	questions := map[Op]func(c *Client) error{
		OpGet:      func(c *Client) error { _, err := c.Devices(); return err },
		OpPortGet:  func(c *Client) error { _, err := c.Ports(Device{Handle: Handle{1, "a"}}); return err },
		OpSysGet:   func(c *Client) error { _, err := c.System(); return err },
		OpResGet:   func(c *Client) error { _, err := c.Resources(1); return err },
		OpResQPGet: func(c *Client) error { _, err := c.QueuePairs(1); return err },
		OpResMRGet: func(c *Client) error { _, err := c.MemoryRegions(1); return err },
		OpStatGet:  func(c *Client) error { _, err := c.Counters(1, 1); return err },
	}
	kinds := []error{errors.ErrUnsupported, fs.ErrPermission, fs.ErrNotExist}
	tests := []struct {
		name    string
		ops     []Op // all but GET when empty
		devices []string
		errnos  map[Op]unix.Errno // beside that of the operation
		errno   unix.Errno
		want    error // one of kinds, or nil for a plain failure
	}{
		{name: "not permitted", errno: unix.EPERM, want: fs.ErrPermission},
		{name: "device removed", ops: []Op{OpPortGet, OpResGet, OpResQPGet, OpResMRGet, OpStatGet}, errno: unix.EINVAL, want: fs.ErrNotExist},
		{name: "old kernel", ops: []Op{OpResGet, OpResQPGet, OpResMRGet}, devices: []string{"a"},
			errnos: map[Op]unix.Errno{OpResGet: unix.EINVAL}, errno: unix.EINVAL, want: errors.ErrUnsupported},
		{name: "driver without counters", ops: []Op{OpStatGet}, devices: []string{"a"}, errno: unix.EINVAL, want: errors.ErrUnsupported},
		{name: "older than namespaces", ops: []Op{OpSysGet}, errno: unix.EINVAL, want: errors.ErrUnsupported},
		{name: "driver that cannot query", ops: []Op{OpResQPGet, OpResMRGet}, devices: []string{"a"}, errno: unix.EINVAL},
		{name: "failed", errno: unix.EIO},
		{name: "nobody listens", errno: unix.ECONNREFUSED, want: errors.ErrUnsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ops := tt.ops
			if len(ops) == 0 {
				ops = []Op{OpGet, OpPortGet, OpSysGet, OpResGet, OpResQPGet, OpResMRGet, OpStatGet}
			}
			for _, op := range ops {
				k := &kernel{t: t, errnos: map[Op]unix.Errno{}}
				for i, name := range tt.devices {
					k.devices = append(k.devices, devicePayload(t, uint32(i+1), name, 1))
				}
				for o, errno := range tt.errnos {
					k.errnos[o] = errno
				}
				k.errnos[op] = tt.errno
				c := k.client()
				err := questions[op](c)
				var e *Error
				if !errors.As(err, &e) || e.Op != op || !errors.Is(err, tt.errno) {
					t.Errorf("%s: %#v", op, err)
				}
				for _, kind := range kinds {
					if got, want := errors.Is(err, kind), errors.Is(tt.want, kind); got != want {
						t.Errorf("%s: %v: is %v: %t", op, err, kind, got)
					}
				}
				if c.Broken() {
					t.Errorf("%s: broken by an errno", op)
				}
				if len(k.asked) > all {
					t.Errorf("%s: asked %v", op, k.asked)
				}
			}
		})
	}
}

// silent is a kernel that does not answer.
type silent struct{ deadline time.Time }

func (s *silent) Close() error                         { return nil }
func (s *silent) Send(netlink.Message) error           { return nil }
func (s *silent) SendMessages([]netlink.Message) error { return nil }
func (s *silent) SetDeadline(t time.Time) error        { s.deadline = t; return nil }
func (s *silent) SetReadDeadline(t time.Time) error    { s.deadline = t; return nil }
func (s *silent) SetWriteDeadline(time.Time) error     { return nil }
func (s *silent) Receive() ([]netlink.Message, error) {
	if s.deadline.IsZero() {
		select {}
	}
	<-time.After(time.Until(s.deadline))
	return nil, os.NewSyscallError("recvmsg", os.ErrDeadlineExceeded)
}
func (s *silent) ReceiveIter() iter.Seq2[netlink.Message, error] {
	return func(yield func(netlink.Message, error) bool) {
		_, err := s.Receive()
		yield(netlink.Message{}, err)
	}
}

func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClient(netlink.NewConn(&silent{}, 1))
		start := time.Now()
		_, err := c.QueuePairs(1)
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != readTimeout {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if !c.Broken() {
			t.Error("a late answer would be taken for the next one's")
		}
		if _, err := c.Devices(); !errors.Is(err, errBroken) {
			t.Errorf("asked again: %v", err)
		}
	})
}

// One queue pair that its driver cannot query ends the list with an errno:
// what came before is kept.
func TestDumpThatEndsWithAnErrno(t *testing.T) {
	c := NewClient(nltest.Dial(func(reqs []netlink.Message) ([]netlink.Message, error) {
		h := reqs[0].Header
		h.Flags = netlink.Multi
		done := h
		done.Type = netlink.Done
		return []netlink.Message{
			{Header: h, Data: queuePairPayload(t, 5, 6)},
			{Header: done, Data: []byte{0xfb, 0xff, 0xff, 0xff}}, // -EIO
		}, nil
	}))
	pairs, err := c.QueuePairs(0)
	if len(pairs) != 2 || !errors.Is(err, unix.EIO) || c.Broken() {
		t.Errorf("%+v, %v, broken %t", pairs, err, c.Broken())
	}
}

func queuePairPayload(t *testing.T, numbers ...uint32) []byte {
	return payload(t, func(ae *netlink.AttributeEncoder) {
		ae.Uint32(attrDevIndex, 0)
		ae.String(attrDevName, "a")
		ae.Nested(attrResQP, func(nae *netlink.AttributeEncoder) error {
			for _, n := range numbers {
				nae.Nested(attrResQPEntry, func(nae *netlink.AttributeEncoder) error {
					nae.Uint32(attrResLQPN, n)
					nae.Uint8(attrResState, uint8(StateRTS))
					return nil
				})
			}
			return nil
		})
	})
}

// On a kernel without InfiniBand the socket says so; on one with it, listing
// works.
func TestDial(t *testing.T) {
	c, err := Dial(nil)
	if err != nil {
		var e *Error
		if !errors.Is(err, errors.ErrUnsupported) || !errors.As(err, &e) {
			t.Errorf("%#v", err)
		}
		return
	}
	defer c.Close()
	if _, err := c.Devices(); err != nil {
		t.Error(err)
	}
}
