package sockdiag

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"

	"grayfail/collector/netns"
	"grayfail/event"
	"grayfail/internal/testkit"
)

// kernel answers like sock_diag: one list for each address family.
type kernel struct {
	lists map[uint8][]netlink.Message
	errno map[uint8]unix.Errno
	asked int
}

func (k *kernel) answer(req []netlink.Message) ([]netlink.Message, error) {
	r := req[0]
	k.asked++
	if r.Header.Type != unix.SOCK_DIAG_BY_FAMILY || len(r.Data) < sizeofRequest || r.Data[1] != unix.IPPROTO_TCP {
		return refuse(unix.EINVAL, r)
	}
	if errno := k.errno[r.Data[0]]; errno != 0 {
		return refuse(errno, r)
	}
	out := append([]netlink.Message(nil), k.lists[r.Data[0]]...)
	out = append(out, netlink.Message{Header: netlink.Header{Type: netlink.Done}})
	for i := range out {
		out[i].Header.Sequence, out[i].Header.PID = r.Header.Sequence, nltest.PID
		out[i].Header.Flags |= netlink.Multi
	}
	return out, nil
}

// refuse answers with an error. Request flags do not belong in the answer: a
// dump's would read as NLM_F_ACK_TLVS.
func refuse(errno unix.Errno, req netlink.Message) ([]netlink.Message, error) {
	req.Header.Flags = 0
	return nltest.Error(int(errno), []netlink.Message{req})
}

func (k *kernel) collector(t *testing.T, opts Options) *Collector {
	opts.proc = t.TempDir() // no processes: nobody owns anything
	opts.dial = func(ns netns.Namespace) (*netlink.Conn, error) {
		switch ns.Name {
		case "gone":
			return nil, &netns.Error{Name: ns.Name, Err: netns.ErrVanished}
		case "closed":
			return nil, unix.EPERM
		}
		return nltest.Dial(k.answer), nil
	}
	return New(opts)
}

func fixtureKernel(t *testing.T, side string) *kernel {
	return &kernel{lists: map[uint8][]netlink.Message{
		unix.AF_INET:  testkit.ReadDump(t, filepath.Join(fixtures, side+"-inet.bin")),
		unix.AF_INET6: testkit.ReadDump(t, filepath.Join(fixtures, side+"-inet6.bin")),
	}}
}

var own = netns.Namespace{Inode: 7}

func TestCollectRoles(t *testing.T) {
	for side, role := range map[string]event.Role{"coordinator": event.RoleClient, "worker": event.RoleServer} {
		list, problems, err := fixtureKernel(t, side).collector(t, Options{}).Collect(99, []netns.Namespace{own}, []uint16{50052, 50053})
		if err != nil || len(problems) != 0 {
			t.Errorf("%s: %v, %v", side, problems, err)
		}
		want := map[string]int{"coordinator": 7, "worker": 5}[side] // without listeners
		if len(list) != want {
			t.Errorf("%s: %d sockets, want %d", side, len(list), want)
		}
		for _, s := range list {
			if s.Flow.Role != role || s.Flow.NetnsInode != 7 || s.TimeNS != 99 {
				t.Errorf("%s: %+v", side, s)
			}
		}
	}
}

func TestCollectWithoutPorts(t *testing.T) {
	k := &kernel{}
	c := k.collector(t, Options{})
	list, problems, err := c.Collect(1, []netns.Namespace{own}, nil)
	if len(list) != 0 || len(problems) != 0 || err != nil || k.asked != 0 {
		t.Errorf("%v, %v, %v after %d requests", list, problems, err, k.asked)
	}
	if !c.Complete(own.Inode) {
		t.Error("there was nothing to read, and it is not complete")
	}
}

func TestCollectBounds(t *testing.T) {
	c := fixtureKernel(t, "coordinator").collector(t, Options{MaxSockets: 3})
	list, problems, err := c.Collect(1, []netns.Namespace{own}, []uint16{50052, 50053})
	if err != nil || len(list) != 3 {
		t.Errorf("%d sockets, %v", len(list), err)
	}
	if len(problems) != 1 || problems[0] != (event.Problem{Reason: ReasonOverflow, Detail: "4 sockets beyond the first 3 are left out"}) {
		t.Errorf("problems = %v", problems)
	}
	if c.Complete(own.Inode) {
		t.Error("sockets were left out, and the namespace counts as complete")
	}
	ports := make([]uint16, maxPorts+1)
	for i := range ports {
		ports[i] = uint16(i + 1)
	}
	k := &kernel{}
	_, problems, err = k.collector(t, Options{}).Collect(1, []netns.Namespace{own}, ports)
	if err != nil || len(problems) != 1 || problems[0].Reason != ReasonPorts {
		t.Errorf("too many ports: %v, %v", problems, err)
	}
}

// TestCollectFails: one family, one namespace or all of them.
func TestCollectFails(t *testing.T) {
	ports := []uint16{50052, 50053}
	k := fixtureKernel(t, "coordinator")
	k.errno = map[uint8]unix.Errno{unix.AF_INET6: unix.EIO}
	c := k.collector(t, Options{})
	list, problems, err := c.Collect(1, []netns.Namespace{own}, ports)
	if err != nil || len(list) != 5 || c.Complete(own.Inode) {
		t.Errorf("without IPv6: %d sockets, %v, complete %t", len(list), err, c.Complete(own.Inode))
	}
	if len(problems) != 1 || problems[0].Reason != netns.ReasonFailed || !strings.Contains(problems[0].Detail, "IPv6 sockets: ") {
		t.Errorf("problems = %v", problems)
	}

	k.errno = map[uint8]unix.Errno{unix.AF_INET: unix.ENOENT, unix.AF_INET6: unix.ENOENT}
	list, problems, err = c.Collect(1, []netns.Namespace{own}, ports)
	if !errors.Is(err, unix.ENOENT) || list != nil {
		t.Errorf("without tcp_diag: %v, %v", list, err)
	}
	if len(problems) != 1 || problems[0].Reason != ReasonNotSupported || !strings.Contains(problems[0].Detail, "tcp_diag") {
		t.Errorf("problems = %v", problems)
	}

	k.errno = nil
	list, problems, err = c.Collect(1, []netns.Namespace{
		{Name: "gone", Inode: 8, Path: "/gone"}, {Name: "closed", Inode: 9, Path: "/closed"}, own,
	}, ports)
	if err != nil || len(list) != 7 || !c.Complete(7) || c.Complete(8) || c.Complete(9) {
		t.Errorf("one namespace of three: %d sockets, %v", len(list), err)
	}
	if len(problems) != 1 || problems[0].Reason != netns.ReasonNoPermission || !strings.Contains(problems[0].Detail, `"closed"`) {
		t.Errorf("problems = %v", problems)
	}
}
