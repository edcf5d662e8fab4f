package qdisc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"

	"grayfail/collector/netns"
	"grayfail/event"
)

// kernel answers like rtnetlink.
type kernel struct {
	qdiscs  [][]netlink.Message // one list per dump, the last one stays
	links   map[int]string
	late    map[int]string // known when asked for alone, missing in the list
	linkErr unix.Errno
	dumpErr unix.Errno
	asked   []string
}

func link(index int, name string) netlink.Message {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	return netlink.Message{
		Header: netlink.Header{Type: unix.RTM_NEWLINK},
		Data:   append(b, nltest.MustMarshalAttributes([]netlink.Attribute{{Type: unix.IFLA_IFNAME, Data: append([]byte(name), 0)}})...),
	}
}

func (k *kernel) answer(req []netlink.Message) ([]netlink.Message, error) {
	r := req[0]
	reply := func(msgs []netlink.Message, multi bool) ([]netlink.Message, error) {
		out := append([]netlink.Message(nil), msgs...)
		if multi {
			out = append(out, netlink.Message{})
		}
		for i := range out {
			out[i].Header.Sequence, out[i].Header.PID = r.Header.Sequence, nltest.PID
		}
		if multi {
			out[len(out)-1].Header.Type = netlink.Done
			for i := range out {
				out[i].Header.Flags |= netlink.Multi
			}
		}
		return out, nil
	}
	dump := r.Header.Flags&netlink.Dump == netlink.Dump
	switch {
	case r.Header.Type == unix.RTM_GETQDISC && dump:
		k.asked = append(k.asked, "qdiscs")
		if k.dumpErr != 0 {
			return refuse(k.dumpErr, r)
		}
		list := k.qdiscs[0]
		if len(k.qdiscs) > 1 {
			k.qdiscs = k.qdiscs[1:]
		}
		return reply(list, true)
	case r.Header.Type == unix.RTM_GETLINK && dump:
		k.asked = append(k.asked, "links")
		if k.linkErr != 0 {
			return refuse(k.linkErr, r)
		}
		var list []netlink.Message
		for index, name := range k.links {
			list = append(list, link(index, name))
		}
		return reply(list, true)
	case r.Header.Type == unix.RTM_GETLINK:
		index := int(binary.NativeEndian.Uint32(r.Data[4:]))
		k.asked = append(k.asked, fmt.Sprintf("link %d", index))
		if name, ok := k.late[index]; ok {
			return reply([]netlink.Message{link(index, name)}, false)
		}
		return refuse(unix.ENODEV, r)
	}
	return refuse(unix.EOPNOTSUPP, r)
}

// refuse answers with an error. Request flags do not belong in the answer: a
// dump's would read as NLM_F_ACK_TLVS.
func refuse(errno unix.Errno, req netlink.Message) ([]netlink.Message, error) {
	req.Header.Flags = 0
	return nltest.Error(int(errno), []netlink.Message{req})
}

func (k *kernel) collector() *Collector {
	return New(Options{dial: func(netns.Namespace) (*netlink.Conn, error) { return nltest.Dial(k.answer), nil }})
}

func tbf(ifindex int) netlink.Message {
	return message(ifindex, 0x80010000, 0xFFFFFFFF, kind("tbf"), nest(basic(uint64(ifindex), 1)))
}

func devices(list []event.Qdisc) (out []string) {
	for _, q := range list {
		out = append(out, q.Device)
	}
	return out
}

var own = []netns.Namespace{{Inode: 1}}

func TestCollectNames(t *testing.T) {
	for _, tt := range []struct {
		name    string
		kernel  kernel
		want    []string
		asked   []string
		problem string
	}{
		{
			name:   "all known: two requests",
			kernel: kernel{qdiscs: [][]netlink.Message{{tbf(1), tbf(2)}}, links: map[int]string{1: "lo", 2: "eth0"}},
			want:   []string{"lo", "eth0"}, asked: []string{"qdiscs", "links"},
		},
		{
			name:   "an interface vanished between the dumps",
			kernel: kernel{qdiscs: [][]netlink.Message{{tbf(1), tbf(7), tbf(2)}}, links: map[int]string{1: "lo", 2: "eth0"}},
			want:   []string{"lo", "eth0"}, asked: []string{"qdiscs", "links", "link 7"},
		},
		{
			name:   "an interface is missing in the list and yet there",
			kernel: kernel{qdiscs: [][]netlink.Message{{tbf(1), tbf(7)}}, links: map[int]string{1: "lo"}, late: map[int]string{7: "veth7"}},
			want:   []string{"lo", "veth7"}, asked: []string{"qdiscs", "links", "link 7"},
		},
		{
			name:   "names cannot be read: kept by number",
			kernel: kernel{qdiscs: [][]netlink.Message{{tbf(1), tbf(7)}}, linkErr: unix.EIO},
			want:   []string{"if1", "if7"}, asked: []string{"qdiscs", "links"},
			problem: "own network namespace: RTM_GETLINK: netlink receive: input/output error",
		},
		{
			name:   "nothing there",
			kernel: kernel{qdiscs: [][]netlink.Message{{}}},
			asked:  []string{"qdiscs"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, problems, err := tt.kernel.collector().Collect(99, own)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, devices(list)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.asked, tt.kernel.asked); diff != "" {
				t.Errorf("requests:\n%s", diff)
			}
			var want []event.Problem
			if tt.problem != "" {
				want = []event.Problem{{Reason: netns.ReasonFailed, Detail: tt.problem}}
			}
			if diff := cmp.Diff(want, problems); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCollectBoundsLookups: hundreds of vanished interfaces do not make
// hundreds of requests; those not asked for are kept by number.
func TestCollectBoundsLookups(t *testing.T) {
	var list []netlink.Message
	for i := range 100 {
		list = append(list, tbf(i+1))
	}
	k := kernel{qdiscs: [][]netlink.Message{list}}
	got, _, err := k.collector().Collect(1, own)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 100-maxVanished || len(k.asked) != 2+maxVanished {
		t.Errorf("%d qdiscs after %d requests", len(got), len(k.asked))
	}
}

func TestCollectInterrupted(t *testing.T) {
	torn := tbf(1)
	torn.Header.Flags |= unix.NLM_F_DUMP_INTR
	links := map[int]string{1: "lo", 2: "eth0"}
	k := kernel{qdiscs: [][]netlink.Message{{torn}, {torn}, {tbf(1), tbf(2)}}, links: links}
	list, problems, err := k.collector().Collect(1, own)
	if err != nil || len(problems) != 0 || len(list) != 2 {
		t.Errorf("after two torn dumps: %v, %v, %v", list, problems, err)
	}
	k = kernel{qdiscs: [][]netlink.Message{{torn}}, links: links}
	list, problems, err = k.collector().Collect(1, own)
	if err != nil || len(list) != 1 {
		t.Errorf("torn for ever: %v, %v", list, err)
	}
	if len(problems) != 1 || problems[0].Reason != netns.ReasonInterrupted || !strings.Contains(problems[0].Detail, "4 tries") {
		t.Errorf("problems = %v", problems)
	}
}

// TestCollectFails: with nothing read the error is not nil; with one namespace
// of two it is a problem.
func TestCollectFails(t *testing.T) {
	bad := kernel{dumpErr: unix.EPERM}
	list, problems, err := bad.collector().Collect(1, own)
	if !errors.Is(err, unix.EPERM) || list != nil {
		t.Errorf("Collect = %v, %v", list, err)
	}
	if len(problems) != 1 || problems[0].Reason != netns.ReasonNoPermission {
		t.Errorf("problems = %v", problems)
	}
	good := kernel{qdiscs: [][]netlink.Message{{tbf(1)}}, links: map[int]string{1: "eth0"}}
	c := New(Options{dial: func(ns netns.Namespace) (*netlink.Conn, error) {
		switch ns.Name {
		case "b":
			return nil, unix.EACCES
		case "c":
			return nil, &netns.Error{Name: "c", Err: netns.ErrVanished}
		}
		return nltest.Dial(good.answer), nil
	}})
	list, problems, err = c.Collect(7, []netns.Namespace{{Name: "a", Path: "/a"}, {Name: "b", Path: "/b"}, {Name: "c", Path: "/c"}})
	if err != nil || len(list) != 1 || list[0].Netns != "a" || list[0].TimeNS != 7 {
		t.Errorf("Collect = %+v, %v", list, err)
	}
	if len(problems) != 1 || problems[0].Reason != netns.ReasonNoPermission || !strings.Contains(problems[0].Detail, `"b"`) {
		t.Errorf("problems = %v", problems)
	}
}

// TestCollectRedials: the connection in our own namespace is kept, until it
// fails.
func TestCollectRedials(t *testing.T) {
	k := kernel{qdiscs: [][]netlink.Message{{tbf(1)}}, links: map[int]string{1: "eth0"}}
	dialed := 0
	c := New(Options{dial: func(netns.Namespace) (*netlink.Conn, error) {
		dialed++
		return nltest.Dial(k.answer), nil
	}})
	for _, step := range []struct {
		fail unix.Errno
		want int
	}{{0, 1}, {0, 1}, {unix.EIO, 1}, {0, 2}, {0, 2}} {
		k.dumpErr = step.fail
		if _, _, err := c.Collect(1, own); (err != nil) != (step.fail != 0) {
			t.Fatalf("%v", err)
		}
		if dialed != step.want {
			t.Errorf("dialed %d times, want %d", dialed, step.want)
		}
	}
}

// TestCollectOverrun: the kernel ran out of room for its answer (ENOBUFS). The
// reading is not believed, the reason is shown, and the next one starts anew.
func TestCollectOverrun(t *testing.T) {
	k := kernel{qdiscs: [][]netlink.Message{{tbf(1)}}, links: map[int]string{1: "eth0"}, dumpErr: unix.ENOBUFS}
	dialed := 0
	c := New(Options{dial: func(netns.Namespace) (*netlink.Conn, error) {
		dialed++
		return nltest.Dial(k.answer), nil
	}})
	list, problems, err := c.Collect(1, own)
	if !errors.Is(err, unix.ENOBUFS) || list != nil || len(problems) != 1 || !strings.Contains(problems[0].Detail, "no buffer space") {
		t.Errorf("Collect = %v, %+v, %v", list, problems, err)
	}
	k.dumpErr = 0
	if list, problems, err := c.Collect(2, own); err != nil || len(list) != 1 || len(problems) != 0 || dialed != 2 {
		t.Errorf("after it: %v, %+v, %v, dialed %d times", list, problems, err, dialed)
	}
}
