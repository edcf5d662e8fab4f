package legs

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"golang.org/x/sys/unix"

	"grayfail/collector/netns"
	"grayfail/internal/testkit"
)

var update = flag.Bool("update", false, "write the dumps of this kernel to testdata")

const fixtures = "testdata/6.18-veth"

// fromIP reads `ip -j address`, the reading that ours is compared with.
func fromIP(t *testing.T, doc []byte) map[string]string {
	t.Helper()
	var list []struct {
		Name  string `json:"ifname"`
		Addrs []struct {
			Local string `json:"local"`
		} `json:"addr_info"`
	}
	if err := json.Unmarshal(doc, &list); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, link := range list {
		for _, a := range link.Addrs {
			out[a.Local] = link.Name
		}
	}
	return out
}

func text(devices map[netip.Addr]string) map[string]string {
	out := make(map[string]string, len(devices))
	for a, name := range devices {
		out[a.String()] = name
	}
	return out
}

// TestLiveAddresses: against ip(8), with a second address under a label and a
// point-to-point address, whose peer is not ours.
func TestLiveAddresses(t *testing.T) {
	name := testkit.Netns(t, "gf-legs-addr")
	for _, args := range [][]string{
		{"link", "add", "la0", "type", "veth", "peer", "name", "la1"},
		// Link-local addresses would come some time after "up".
		{"link", "set", "la0", "addrgenmode", "none"},
		{"link", "set", "la1", "addrgenmode", "none"},
		{"addr", "add", "10.79.3.1/24", "dev", "la0"},
		{"addr", "add", "10.79.3.9/24", "dev", "la0", "label", "la0:alias"},
		{"addr", "add", "10.79.4.1", "peer", "10.79.4.2", "dev", "la1"},
		{"addr", "add", "fd79:3::1/64", "dev", "la1", "nodad"},
		{"link", "set", "la0", "up"},
		{"link", "set", "la1", "up"},
	} {
		testkit.Run(t, "ip", append([]string{"-n", name}, args...)...)
	}
	ns, err := netns.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	r := NewAddressReader()
	infos, problems := r.Read(seconds(0), []netns.Namespace{ns}, func(uint32) bool { return false })
	if len(problems) != 0 || len(infos) != 1 {
		t.Fatalf("%v, %v", infos, problems)
	}
	if infos[0].Inode != ns.Inode || infos[0].Name != name || !infos[0].Unread {
		t.Errorf("%+v", infos[0])
	}
	doc := []byte(testkit.Run(t, "ip", "-n", name, "-j", "address"))
	got := text(infos[0].Devices)
	if diff := cmp.Diff(fromIP(t, doc), got); diff != "" {
		t.Errorf("(-ip +read):\n%s", diff)
	}
	if got["10.79.3.9"] != "la0" || got["10.79.4.1"] != "la1" || got["10.79.4.2"] != "" {
		t.Errorf("%v", got)
	}

	// Believed for ten seconds, then read again.
	testkit.Run(t, "ip", "-n", name, "addr", "add", "10.79.3.7/24", "dev", "la0")
	for at, want := range map[float64]string{9: "", 10: "la0"} {
		again := NewAddressReader()
		again.known = map[uint32]addresses{ns.Inode: r.known[ns.Inode]}
		infos, _ = again.Read(seconds(at), []netns.Namespace{ns}, nil)
		if got := infos[0].Devices[netip.MustParseAddr("10.79.3.7")]; got != want || infos[0].Unread {
			t.Errorf("at %g s: %q, want %q", at, got, want)
		}
	}
	if *update {
		link, err := netns.LinkRequest(0)
		if err != nil {
			t.Fatal(err)
		}
		testkit.InNetns(t, name, func() error {
			addrs, err := testkit.CaptureDump(unix.NETLINK_ROUTE, unix.RTM_GETADDR, make([]byte, unix.SizeofIfAddrmsg))
			if err != nil {
				return err
			}
			links, err := testkit.CaptureDump(unix.NETLINK_ROUTE, unix.RTM_GETLINK, link.Data)
			if err != nil {
				return err
			}
			testkit.WriteFile(t, filepath.Join(fixtures, "addr.bin"), addrs)
			testkit.WriteFile(t, filepath.Join(fixtures, "link.bin"), links)
			return nil
		})
		testkit.WriteFile(t, filepath.Join(fixtures, "ip.json"), []byte(testkit.Run(t, "ip", "-n", name, "-j", "address")))
	}
}

func TestAddressFixture(t *testing.T) {
	links, err := netns.ParseLinks(testkit.ReadDump(t, filepath.Join(fixtures, "link.bin")))
	if err != nil {
		t.Fatal(err)
	}
	devices, err := ParseAddresses(testkit.ReadDump(t, filepath.Join(fixtures, "addr.bin")), links)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(filepath.Join(fixtures, "ip.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fromIP(t, doc), text(devices)); diff != "" {
		t.Error(diff)
	}
}

func address(index int, attrs ...netlink.Attribute) netlink.Message {
	b := make([]byte, unix.SizeofIfAddrmsg)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	return netlink.Message{
		Header: netlink.Header{Type: unix.RTM_NEWADDR},
		Data:   append(b, nltest.MustMarshalAttributes(attrs)...),
	}
}

func attr(kind uint16, addr string) netlink.Attribute {
	return netlink.Attribute{Type: kind, Data: netip.MustParseAddr(addr).AsSlice()}
}

func TestParseAddresses(t *testing.T) {
	links := map[int]string{1: "lo", 2: "eth0", 3: "eth1"}
	devices, err := ParseAddresses([]netlink.Message{
		address(2, attr(unix.IFA_ADDRESS, "10.0.0.2"), attr(unix.IFA_LOCAL, "10.0.0.1")),
		address(2, attr(unix.IFA_LOCAL, "10.0.1.1"), attr(unix.IFA_ADDRESS, "10.0.1.2")),
		address(2, attr(unix.IFA_ADDRESS, "fe80::1")),
		address(3, attr(unix.IFA_ADDRESS, "fe80::1")),
		address(9, attr(unix.IFA_LOCAL, "10.0.9.1")), // vanished meanwhile
		address(1, netlink.Attribute{Type: unix.IFA_LOCAL, Data: []byte{1, 2, 3}}),
		{Header: netlink.Header{Type: unix.RTM_NEWADDR}, Data: []byte{1}},
		address(1, attr(unix.IFA_LOCAL, "127.0.0.1")),
	}, links)
	want := map[string]string{"10.0.0.1": "eth0", "10.0.1.1": "eth0", "fe80::1": "", "127.0.0.1": "lo"}
	if diff := cmp.Diff(want, text(devices)); diff != "" {
		t.Error(diff)
	}
	if err == nil || err.Error() != "message 5: address of 3 bytes\nmessage 6: struct ifaddrmsg: truncated" {
		t.Errorf("error %v", err)
	}
}

func TestAddressesFail(t *testing.T) {
	r := NewAddressReader()
	r.dial = func(ns netns.Namespace) (*netlink.Conn, error) {
		if ns.Name == "gone" {
			return nil, netns.ErrVanished
		}
		return nil, errors.New("boom")
	}
	infos, problems := r.Read(1, []netns.Namespace{{Name: "a", Inode: 1, Path: "/a"}, {Name: "gone", Inode: 2, Path: "/b"}}, nil)
	if len(infos) != 2 || infos[0].Devices != nil || infos[1].Devices != nil {
		t.Errorf("%+v", infos)
	}
	if len(problems) != 1 || problems[0].Detail != `network namespace "a": boom` {
		t.Errorf("%+v", problems)
	}
}

func FuzzParseAddresses(f *testing.F) {
	for _, m := range testkit.ReadDump(f, filepath.Join(fixtures, "addr.bin")) {
		f.Add(m.Data)
	}
	f.Add([]byte{})
	f.Add(address(1, netlink.Attribute{Type: unix.IFA_LOCAL, Data: []byte{1}}).Data)
	f.Fuzz(func(t *testing.T, b []byte) {
		devices, err := ParseAddresses([]netlink.Message{{Header: netlink.Header{Type: unix.RTM_NEWADDR}, Data: b}}, map[int]string{1: "lo", 2: "eth0"})
		if err != nil && len(devices) != 0 {
			t.Errorf("%v with %v", devices, err)
		}
		for a := range devices {
			if !a.IsValid() || a.Is4In6() {
				t.Errorf("address %v", a)
			}
		}
	})
}
