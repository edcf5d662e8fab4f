package legs

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
)

// TestOtherNamespace: two namespaces that reach one peer have two legs. Our
// own has the plain name, whatever came first in the reading.
func TestOtherNamespace(t *testing.T) {
	nets := []NetnsInfo{boxNet, ownNet}
	table := timeline(t, Config{}, []look{
		{at: 0, nets: nets, sockets: []sock{{inode: boxInode, acked: 1}, {acked: 1}, {inode: boxInode, peer: "10.8.8.8:50052"}},
			want:    map[string]string{peerB: "unknown", peerB + "@box": "unknown", "10.8.8.8:50052": "unknown"},
			changes: []string{peerB + " unknown"}, why: "only ours has a known device"},
	})
	if l := one(t, table, peerB); l.Netns != "" || l.Device != "veth-b" {
		t.Errorf("%+v", l)
	}
	if l := one(t, table, peerB+"@box"); l.Netns != "box" {
		t.Errorf("%+v", l)
	}
	if got := table.Name(sock{inode: boxInode}.event().Flow); got != peerB+"@box" {
		t.Errorf("Name in the box = %q", got)
	}
	if got := table.Name(flow(peerB)); got != peerB {
		t.Errorf("Name in ours = %q", got)
	}
	// The other way round in time: a name once given stays.
	table = New(Config{Ports: []uint16{50052}})
	table.Update(seconds(0), sockets(sock{inode: boxInode}), nets)
	table.Update(seconds(1), sockets(sock{inode: boxInode}, sock{}), nets)
	if diff := cmp.Diff([]string{peerB, peerB + "@host"}, names(table)); diff != "" {
		t.Error(diff)
	}
}

// TestContainerReplaced: a leg outlives its container, whether the new one has
// the same name or another.
func TestContainerReplaced(t *testing.T) {
	const newInode = 3000
	for _, name := range []string{"box", "box:77"} {
		table := New(Config{Ports: []uint16{50052}})
		table.Update(seconds(0), sockets(sock{inode: boxInode, acked: 1000, quiet: time.Hour}), []NetnsInfo{ownNet, boxNet})
		table.Update(seconds(1), nil, []NetnsInfo{ownNet})
		table.Update(seconds(5), nil, []NetnsInfo{ownNet})
		if l := one(t, table, peerB); l.Transport != event.TransportDead {
			t.Errorf("%s: after the container ended: %+v", name, l)
		}
		table.Update(seconds(9), sockets(sock{cookie: 9, inode: newInode, acked: 500, quiet: time.Hour}), []NetnsInfo{ownNet, {Inode: newInode, Name: name}})
		l := one(t, table, peerB)
		if l.Netns != name || l.BytesAcked != 1500 || l.Transport != event.TransportIdle || len(table.Legs()) != 1 {
			t.Errorf("%s: %+v of %v", name, l, names(table))
		}
	}
}

// TestMovedIntoContainer: the engine is moved from the host into a container.
// After a while its leg moves along, static or not.
func TestMovedIntoContainer(t *testing.T) {
	for _, static := range [][]Static{nil, {{Name: "rpc-b", Peer: netip.MustParseAddrPort(peerB)}}} {
		table := New(Config{Ports: []uint16{50052}, Static: static})
		nets := []NetnsInfo{ownNet, boxNet}
		table.Update(seconds(0), sockets(sock{acked: 1000, quiet: time.Hour}), nets)
		table.Update(seconds(1), nil, nets)
		table.Update(seconds(120), sockets(sock{cookie: 9, inode: boxInode, acked: 500}), nets)
		legs := table.Legs()
		if len(legs) != 1 || legs[0].Netns != "box" || legs[0].BytesAcked != 1500 {
			t.Errorf("%+v", legs)
		}
	}
}

// TestNamedBeforeNamespace: ebpf may report a flow before the first reading has
// told the namespaces. The leg is the same.
func TestNamedBeforeNamespace(t *testing.T) {
	table := New(Config{Ports: []uint16{50052}})
	if got := table.Name(flow(peerB)); got != peerB {
		t.Errorf("Name = %q", got)
	}
	table.Update(seconds(0), sockets(sock{acked: 10}), []NetnsInfo{ownNet})
	if legs := table.Legs(); len(legs) != 1 || legs[0].Netns != "" || legs[0].BytesAcked != 10 {
		t.Errorf("%+v", legs)
	}
	if got := table.Name(flow(peerB)); got != peerB {
		t.Errorf("Name = %q", got)
	}
}

func TestHostAddresses(t *testing.T) {
	table := New(Config{})
	devices := func(list ...string) map[netip.Addr]string {
		m := make(map[netip.Addr]string)
		for _, a := range list {
			m[netip.MustParseAddr(a)] = "x"
		}
		return m
	}
	table.Update(1, nil, []NetnsInfo{
		{Inode: 1, Devices: devices("127.0.0.1", "::1", "fe80::1", "169.254.1.1", "10.0.0.2", "fd00::2")},
		{Inode: 2, Name: "box", Devices: devices("10.0.0.2", "10.0.0.1")},
		{Inode: 3, Name: "dark"},
	})
	var got []string
	for _, a := range table.HostAddresses() {
		got = append(got, a.String())
	}
	if diff := cmp.Diff([]string{"10.0.0.1", "10.0.0.2", "fd00::2"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestHostAddressesAreBounded(t *testing.T) {
	many := NetnsInfo{Inode: ownInode, Devices: map[netip.Addr]string{}}
	for i := range maxAddresses + 44 {
		many.Devices[netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})] = "eth0"
	}
	table := New(Config{Ports: []uint16{50052}})
	table.Update(seconds(0), nil, []NetnsInfo{many})
	if n := len(table.HostAddresses()); n != maxAddresses {
		t.Errorf("%d addresses, want %d", n, maxAddresses)
	}
}
