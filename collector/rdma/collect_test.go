package rdma

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"

	"grayfail/collector/rdma/nldev"
	"grayfail/event"
)

// kernel answers with the captured messages of one or both devices.
type kernel struct {
	t       *testing.T
	dirs    map[uint32]string // fixtures of package nldev by the device's index
	errnos  map[nldev.Op]unix.Errno
	silent  nldev.Op
	asked   map[nldev.Op]int
	dials   int
	refused error // of dial
	// copies of each message in the answer to a list; 0 means one.
	copies map[nldev.Op]int
}

func newKernel(t *testing.T, dirs map[uint32]string) *kernel {
	return &kernel{t: t, dirs: dirs, errnos: make(map[nldev.Op]unix.Errno), asked: make(map[nldev.Op]int)}
}

const (
	rxeIndex = 2
	twoIndex = 3
)

func both() map[uint32]string { return map[uint32]string{rxeIndex: "6.1-rxe", twoIndex: "6.1-twoport"} }

func (k *kernel) dial() (*nldev.Client, error) {
	k.dials++
	if k.refused != nil {
		return nil, k.refused
	}
	return nldev.NewClient(nltest.Dial(k.answer)), nil
}

func (k *kernel) answer(reqs []netlink.Message) ([]netlink.Message, error) {
	req := reqs[0]
	op := nldev.Op(req.Header.Type & 0x3ff)
	k.asked[op]++
	if op == k.silent {
		return nil, os.NewSyscallError("recvmsg", os.ErrDeadlineExceeded)
	}
	refuse := func(errno unix.Errno) ([]netlink.Message, error) {
		msgs, err := nltest.Error(int(errno), reqs)
		msgs[0].Header.Flags = 0
		return msgs, err
	}
	var device, port uint32
	ad, err := netlink.NewAttributeDecoder(req.Data)
	if err != nil {
		k.t.Fatal(err)
	}
	for ad.Next() {
		switch ad.Type() {
		case 1:
			device = ad.Uint32()
		case 3:
			port = ad.Uint32()
		}
	}
	var msgs []netlink.Message
	read := func(device uint32, file string) {
		list := split(k.t, filepath.Join("nldev/testdata", k.dirs[device], file))
		for range max(1, k.copies[op]) {
			for _, m := range list {
				m.Header.Sequence, m.Header.PID = req.Header.Sequence, req.Header.PID
				if len(msgs) >= len(list) {
					m.Data = renumbered(m.Data, uint32(len(msgs))<<8)
				}
				msgs = append(msgs, m)
			}
		}
	}
	if k.errnos[op] != 0 && (device == twoIndex || device == 0) {
		return refuse(k.errnos[op])
	}
	if op != nldev.OpGet && k.dirs[device] == "" {
		return refuse(unix.EINVAL) // removed
	}
	switch op {
	case nldev.OpGet:
		for _, index := range []uint32{rxeIndex, twoIndex} {
			if k.dirs[index] != "" {
				read(index, "get.nl")
			}
		}
	case nldev.OpPortGet:
		read(device, "port_get.nl")
	case nldev.OpResQPGet:
		read(device, "res_qp_get.nl")
	case nldev.OpResGet:
		read(device, "res_get.nl")
	case nldev.OpStatGet:
		read(device, "stat_get_"+string(rune('0'+port))+".nl")
		return msgs, nil
	}
	done := netlink.Message{Header: netlink.Header{Type: netlink.Done, Flags: netlink.Multi, Sequence: req.Header.Sequence, PID: req.Header.PID}}
	for i := range msgs {
		msgs[i].Header.Flags |= netlink.Multi
	}
	return append(msgs, done), nil
}

// split reads captured messages, without the one that ends a dump.
func split(t *testing.T, path string) []netlink.Message {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var msgs []netlink.Message
	for len(b) > 0 {
		size := int(binary.NativeEndian.Uint32(b)+3) &^ 3
		var m netlink.Message
		if err := m.UnmarshalBinary(b[:size]); err != nil {
			t.Fatal(err)
		}
		if m.Header.Type != netlink.Done {
			msgs = append(msgs, m)
		}
		b = b[size:]
	}
	return msgs
}

func testCollector(t *testing.T, k *kernel, opts Options) *Collector {
	t.Helper()
	opts.dial = k.dial
	if opts.sys == nil {
		opts.sys = sysfs(t, classDir+"/", "6.1-rxe.txtar", "6.1-twoport.txtar")
	}
	// The thread 167 that opened rxe0 belongs to process 160.
	opts.proc = fstest.MapFS{"167/status": {Data: []byte("Name:\tagent\nTgid:\t160\nPid:\t167\n")}}
	c := New(opts)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func mustCollect(t *testing.T, c *Collector, now time.Duration, want string) event.RDMA {
	t.Helper()
	r, problems, err := c.Collect(int64(time.Hour + now))
	if err != nil || reasons(problems) != want {
		t.Fatalf("problems %v, want %q; error %v", problems, want, err)
	}
	return r
}

func TestCollect(t *testing.T) {
	c := testCollector(t, newKernel(t, both()), Options{})
	r := mustCollect(t, c, 0, "")
	if len(r.Ports) != 3 || r.TimeNS != int64(time.Hour) || r.QueuePairsNS != r.TimeNS || len(r.Unlisted) != 0 {
		t.Fatalf("%+v", r)
	}
	for i, want := range []event.RDMAPort{
		{Device: "rxe0", Port: 1, Netdev: "ve1", LinkLayer: "Ethernet", Protocol: "roce", State: "ACTIVE", Active: true, GIDsRead: true},
		{Device: "twoport0", Port: 1, Netdev: "tp1", LinkLayer: "Ethernet", Protocol: "roce", State: "ACTIVE", Active: true, RateBytesPerSecond: 12.5e9, GIDsRead: true},
		{Device: "twoport0", Port: 2, Netdev: "tp2", LinkLayer: "Ethernet", Protocol: "roce", State: "DOWN", RateBytesPerSecond: 12.5e9, GIDsRead: true},
	} {
		got := r.Ports[i]
		if len(got.GIDs) < 2 || got.RateBytesPerSecond <= 0 {
			t.Errorf("%+v", got)
		}
		got.GIDs = nil
		if want.RateBytesPerSecond == 0 {
			got.RateBytesPerSecond = 0
		}
		if !equalPorts(got, want) {
			t.Errorf("%d:\n got %+v\nwant %+v", i, got, want)
		}
	}
	rts := event.QueuePair{Device: "rxe0", Port: 1, LQPN: 19, RQPN: 77, Type: "RC", State: "RTS", PID: 160, SendPSN: 200}
	gsi := event.QueuePair{Device: "rxe0", Port: 1, LQPN: 1, Type: "GSI", State: "RTS", KernelName: "ib_core"}
	if len(r.QueuePairs) != 8 || !slices.Contains(r.QueuePairs, rts) || !slices.Contains(r.QueuePairs, gsi) {
		t.Errorf("%+v", r.QueuePairs)
	}
	if len(r.Counters) != 15+4+4 || !slices.Contains(r.Counters, event.RDMACounter{Device: "twoport0", Port: 2, Event: "packet_seq_err", Value: 6}) {
		t.Errorf("%+v", r.Counters)
	}
}

func equalPorts(a, b event.RDMAPort) bool {
	return a.Device == b.Device && a.Port == b.Port && a.Netdev == b.Netdev && a.LinkLayer == b.LinkLayer && a.Protocol == b.Protocol &&
		a.State == b.State && a.Active == b.Active && a.RateBytesPerSecond == b.RateBytesPerSecond && a.GIDsRead == b.GIDsRead
}

// Queue pairs are listed once in five seconds, and when devices come or go.
func TestPace(t *testing.T) {
	k := newKernel(t, map[uint32]string{rxeIndex: "6.1-rxe"})
	c := testCollector(t, k, Options{})
	for _, step := range []struct {
		at     time.Duration
		plug   bool
		listed time.Duration
		lists  int
		ports  int
	}{
		{0, false, 0, 1, 1},
		{1 * time.Second, false, 0, 1, 1},
		{4999 * time.Millisecond, false, 0, 1, 1},
		{5 * time.Second, false, 5 * time.Second, 2, 1},
		{6 * time.Second, true, 6 * time.Second, 4, 3}, // one list a device
		{7 * time.Second, true, 6 * time.Second, 4, 3},
		{8 * time.Second, false, 8 * time.Second, 5, 1},
		{3 * time.Second, false, 3 * time.Second, 6, 1}, // a clock set back
	} {
		k.dirs = map[uint32]string{rxeIndex: "6.1-rxe"}
		if step.plug {
			k.dirs = both()
		}
		r := mustCollect(t, c, step.at, "")
		if r.QueuePairsNS != int64(time.Hour+step.listed) || k.asked[nldev.OpResQPGet] != step.lists || len(r.Ports) != step.ports {
			t.Errorf("at %s: listed at %s, %d lists, %d ports", step.at, time.Duration(r.QueuePairsNS)-time.Hour, k.asked[nldev.OpResQPGet], len(r.Ports))
		}
		if len(r.Ports[0].GIDs) == 0 || len(r.QueuePairs) == 0 {
			t.Errorf("at %s: nothing kept from the last list", step.at)
		}
	}
}

func TestQueuePairsOff(t *testing.T) {
	k := newKernel(t, both())
	c := testCollector(t, k, Options{NoQueuePairs: true})
	r := mustCollect(t, c, 0, ReasonOff)
	if k.asked[nldev.OpResQPGet] != 0 || r.QueuePairsNS != 0 || len(r.QueuePairs) != 0 || len(r.Ports) != 3 || len(r.Ports[0].GIDs) == 0 {
		t.Errorf("%d lists, %+v", k.asked[nldev.OpResQPGet], r)
	}
}

// Whatever one device cannot give, the rest is there.
func TestProblems(t *testing.T) {
	withBroken := func(errs map[string]error) fs.FS {
		full := make(map[string]error)
		for name, err := range errs {
			full[classDir+"/"+name] = err
		}
		return broken{sysfs(t, classDir+"/", "6.1-rxe.txtar", "6.1-twoport.txtar"), full}
	}
	for _, tt := range []struct {
		name     string
		errnos   map[nldev.Op]unix.Errno // of the two-port device
		sys      fs.FS
		problems string
		check    func(r event.RDMA) bool
	}{
		{"queue pairs", map[nldev.Op]unix.Errno{nldev.OpResQPGet: unix.EIO}, nil, ReasonQueuePairs,
			func(r event.RDMA) bool {
				return len(r.QueuePairs) == 5 && slices.Equal(r.Unlisted, []string{"twoport0"})
			}},
		{"not permitted", map[nldev.Op]unix.Errno{nldev.OpResQPGet: unix.EPERM}, nil, ReasonNoPermission,
			func(r event.RDMA) bool {
				return len(r.QueuePairs) == 5 && slices.Equal(r.Unlisted, []string{"twoport0"})
			}},
		{"ports", map[nldev.Op]unix.Errno{nldev.OpPortGet: unix.EIO}, nil, ReasonFailed,
			func(r event.RDMA) bool { return len(r.Ports) == 1 && len(r.QueuePairs) == 8 }},
		{"counters of an old kernel are in sysfs", map[nldev.Op]unix.Errno{nldev.OpStatGet: unix.EINVAL}, nil, "",
			func(r event.RDMA) bool {
				return slices.Contains(r.Counters, event.RDMACounter{Device: "twoport0", Port: 1, Event: "rnr_nak_retry_err", Value: 4})
			}},
		{"counters", map[nldev.Op]unix.Errno{nldev.OpStatGet: unix.EIO}, nil, ReasonFailed + " " + ReasonFailed,
			func(r event.RDMA) bool { return len(r.Counters) == 15 && len(r.Ports) == 3 }},
		{"a file", nil, withBroken(map[string]error{"twoport0/ports/1/rate": unix.EINVAL}), ReasonUnreadable,
			func(r event.RDMA) bool {
				return r.Ports[1].RateBytesPerSecond == 0 && r.Ports[2].RateBytesPerSecond > 0
			}},
		{"files", nil, withBroken(map[string]error{"twoport0/ports/1/rate": unix.EINVAL, "twoport0/ports/1/link_layer": unix.EIO}), ReasonUnreadable,
			func(r event.RDMA) bool { return r.Ports[1].LinkLayer == "" && r.Ports[1].Protocol == "roce" }},
		{"a GID table", nil, withBroken(map[string]error{"twoport0/ports/2/gids": unix.EACCES}), ReasonUnreadable,
			func(r event.RDMA) bool { return !r.Ports[2].GIDsRead && r.Ports[1].GIDsRead }},
		{"a driver leaves files out", nil, withBroken(map[string]error{"rxe0/ports/1/rate": fs.ErrNotExist}), "",
			func(r event.RDMA) bool { return r.Ports[0].RateBytesPerSecond == 0 }},
		{"a container without /sys", nil, fstest.MapFS{}, ReasonNoSysfs,
			func(r event.RDMA) bool {
				return len(r.Ports) == 3 && r.Ports[2].Netdev == "tp2" && !r.Ports[0].GIDsRead
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newKernel(t, both())
			k.errnos = tt.errnos
			c := testCollector(t, k, Options{sys: tt.sys})
			for _, at := range []time.Duration{0, time.Second} { // also between two lists
				if r := mustCollect(t, c, at, tt.problems); !tt.check(r) {
					t.Errorf("after %s: %+v", at, r)
				}
			}
		})
	}
}

// A device that is removed between two questions is left out without a word.
func TestRemovedMeanwhile(t *testing.T) {
	k := newKernel(t, both())
	c := testCollector(t, k, Options{})
	gone := func(reqs []netlink.Message) ([]netlink.Message, error) {
		if k.asked[nldev.OpGet] == 1 { // listed, and gone
			delete(k.dirs, twoIndex)
		}
		return k.answer(reqs)
	}
	c.opts.dial = func() (*nldev.Client, error) { return nldev.NewClient(nltest.Dial(gone)), nil }
	r := mustCollect(t, c, 0, "")
	if len(r.Ports) != 1 || len(r.QueuePairs) != 5 || len(r.Unlisted) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestNoRDMA(t *testing.T) {
	k := newKernel(t, nil)
	c := testCollector(t, k, Options{sys: fstest.MapFS{"class/net/lo": {}}})
	for range 3 {
		r, problems, err := c.Collect(1)
		if !errors.Is(err, errors.ErrUnsupported) || reasons(problems) != ReasonNotSupported || len(r.Ports) != 0 {
			t.Errorf("%+v, %v, %v", r, problems, err)
		}
	}
	if k.dials != 0 {
		t.Error("the socket was opened, which makes the kernel load modules")
	}

	// Nothing tells: the socket does.
	k.refused = &nldev.Error{Err: os.NewSyscallError("socket", unix.EPROTONOSUPPORT)}
	c = testCollector(t, k, Options{sys: fstest.MapFS{}})
	if _, problems, err := c.Collect(1); !errors.Is(err, errors.ErrUnsupported) || reasons(problems) != ReasonNotSupported || k.dials != 1 {
		t.Errorf("%v, %v, %d dials", problems, err, k.dials)
	}
}

// A kernel that stops answering: half of the devices is not handed out as if
// it were all, and the next reading opens a new connection.
func TestSilence(t *testing.T) {
	for _, op := range []nldev.Op{nldev.OpGet, nldev.OpPortGet, nldev.OpResQPGet, nldev.OpStatGet} {
		k := newKernel(t, both())
		k.silent = op
		c := testCollector(t, k, Options{})
		r, problems, err := c.Collect(1)
		if !errors.Is(err, os.ErrDeadlineExceeded) || reasons(problems) != ReasonFailed || len(r.Ports)+len(r.QueuePairs) != 0 {
			t.Errorf("%s: %+v, %v, %v", op, r, problems, err)
		}
		k.silent = 0
		mustCollect(t, c, 0, "")
		if k.dials != 2 {
			t.Errorf("%s: %d connections", op, k.dials)
		}
	}
}

func TestProtocol(t *testing.T) {
	for _, tt := range []struct {
		first, layer string
		port         int
		want         string
	}{
		{"roce", "Ethernet", 2, "roce"}, {"ib", "InfiniBand", 1, "ib"}, {"ib", "Ethernet", 2, "roce"}, {"roce", "InfiniBand", 2, "ib"},
		{"iw", "Ethernet", 2, "iw"}, {"opa", "InfiniBand", 2, "opa"}, {"ib", "", 2, "ib"}, {"", "Ethernet", 1, ""},
	} {
		if got := protocol(tt.first, tt.layer, tt.port); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

func TestMeaningOf(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range meanings {
		if seen[m.event] {
			t.Errorf("%s is listed twice", m.event)
		}
		seen[m.event] = true
	}
	for name, want := range map[string]Meaning{
		"completer_retry_err": Retransmission, "out_of_sequence": OutOfSequence, "sq_num_to": Timeout, "rnr_naks_rcvd": RNRReceived, "rdma_sends": "", "": "",
	} {
		if got := MeaningOf(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
