package netns

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"
)

// link encodes an RTM_NEWLINK message.
func link(index int, name string, flags netlink.HeaderFlags) netlink.Message {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	return netlink.Message{
		Header: netlink.Header{Type: unix.RTM_NEWLINK, Flags: flags},
		Data: append(b, nltest.MustMarshalAttributes([]netlink.Attribute{
			{Type: unix.IFLA_TXQLEN, Data: []byte{0, 0, 0, 0}},
			{Type: unix.IFLA_IFNAME, Data: append([]byte(name), 0)},
		})...),
	}
}

// answers replies to the n-th request with the n-th list of messages.
func answers(t *testing.T, lists ...[]netlink.Message) (*netlink.Conn, *int) {
	t.Helper()
	asked := 0
	return nltest.Dial(func(req []netlink.Message) ([]netlink.Message, error) {
		if asked >= len(lists) {
			t.Errorf("request %d, %d were expected", asked+1, len(lists))
			return nil, errors.New("unexpected request")
		}
		list := append([]netlink.Message(nil), lists[asked]...)
		asked++
		for i := range list {
			list[i].Header.Sequence, list[i].Header.PID = req[0].Header.Sequence, nltest.PID
		}
		return nltest.Multipart(append(list, netlink.Message{Header: netlink.Header{Sequence: req[0].Header.Sequence, PID: nltest.PID}}))
	}), &asked
}

func TestLinksRepeatsInconsistentDump(t *testing.T) {
	c, asked := answers(t,
		[]netlink.Message{link(1, "lo", 0), link(2, "old", unix.NLM_F_DUMP_INTR)},
		[]netlink.Message{link(1, "lo", 0), link(3, "new", 0)},
	)
	got, err := Links(c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int]string{1: "lo", 3: "new"}, got); diff != "" {
		t.Error(diff)
	}
	if *asked != 2 {
		t.Errorf("asked %d times, want 2", *asked)
	}
}

func TestDumpGivesUp(t *testing.T) {
	bad := []netlink.Message{link(1, "lo", unix.NLM_F_DUMP_INTR)}
	c, asked := answers(t, bad, bad, bad, bad)
	got, err := Links(c)
	if !errors.Is(err, ErrInterrupted) {
		t.Errorf("error %v, want ErrInterrupted", err)
	}
	if *asked != dumpTries || len(got) != 1 {
		t.Errorf("asked %d times for %v, want %d and what was read last", *asked, got, dumpTries)
	}
}

func TestDumpError(t *testing.T) {
	c := nltest.Dial(func(req []netlink.Message) ([]netlink.Message, error) {
		return nltest.Error(int(unix.EPERM), req)
	})
	if _, err := Links(c); !errors.Is(err, unix.EPERM) {
		t.Errorf("error %v, want EPERM", err)
	}
}

func TestParseLinksBad(t *testing.T) {
	good := link(1, "lo", 0)
	short := link(2, "gf0", 0)
	short.Data = short.Data[:8]
	cut := link(3, "gf1", 0)
	cut.Data = cut.Data[:len(cut.Data)-2]
	nameless := link(4, "", 0)
	nameless.Data = nameless.Data[:unix.SizeofIfInfomsg]
	for _, tt := range []struct {
		msg  netlink.Message
		want string
	}{
		{short, "message 1: struct ifinfomsg: truncated"},
		{cut, "message 1: attribute of interface 3: truncated"},
		{nameless, "message 1: interface 4 has no IFLA_IFNAME"},
	} {
		names, err := ParseLinks([]netlink.Message{good, tt.msg, link(9, "gf9", 0)})
		if err == nil || err.Error() != tt.want {
			t.Errorf("error %v, want %s", err, tt.want)
		}
		if names[1] != "lo" || names[9] != "gf9" {
			t.Errorf("%s: names %v lost a good one", tt.want, names)
		}
	}
}

func FuzzParseLinks(f *testing.F) {
	f.Add(link(1, "lo", 0).Data)
	f.Add([]byte{})
	f.Add(append(make([]byte, 16), 3, 0, 3, 0))
	f.Add(append(make([]byte, 16), 255, 255, 3, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		names, err := ParseLinks([]netlink.Message{{Header: netlink.Header{Type: unix.RTM_NEWLINK}, Data: b}})
		if (err == nil) != (len(names) == 1) {
			t.Errorf("names %v with error %v", names, err)
		}
		for _, name := range names {
			if strings.Contains(name, "\x00") {
				t.Errorf("name %q", name)
			}
		}
	})
}
