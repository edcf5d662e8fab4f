package legs

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grayfail/event"
)

func TestFinder(t *testing.T) {
	gid := map[netip.Addr]bool{netip.MustParseAddr("10.9.1.1"): true, netip.MustParseAddr("fd00:9::1"): true}
	conn := func(local, peer, comm string, role event.Role, payload uint64) event.TCPSocket {
		return event.TCPSocket{
			State: event.TCPEstablished, HasInfo: true, BytesAcked: payload / 2, BytesReceived: payload / 2,
			Flow: event.Flow{Role: role, Local: netip.MustParseAddrPort(local), Peer: netip.MustParseAddrPort(peer), Comm: comm},
		}
	}
	const client, server = event.RoleClient, event.RoleServer
	for name, c := range map[string]struct {
		cfg    FinderConfig
		socket event.TCPSocket
		peer   string
		local  string
	}{
		"NCCL":                     {FinderConfig{RDMAAddresses: true}, conn("10.9.1.1:40001", "10.9.1.2:41001", "python3", client, 1e6), "10.9.1.2:41001", ""},
		"NCCL over IPv6":           {FinderConfig{RDMAAddresses: true}, conn("[fd00:9::1]:40001", "[fd00:9::2]:41001", "python3", client, 1e6), "[fd00:9::2]:41001", ""},
		"NCCL, who was connected":  {FinderConfig{RDMAAddresses: true}, conn("10.9.1.1:40001", "10.9.1.2:41001", "python3", server, 1e6), "", "10.9.1.1:40001"},
		"only its bootstrap":       {FinderConfig{RDMAAddresses: true}, conn("10.9.1.1:40001", "10.9.1.2:41001", "python3", client, 4000), "", ""},
		"another address":          {FinderConfig{RDMAAddresses: true}, conn("10.0.0.1:40001", "10.0.0.2:41001", "python3", client, 1e6), "", ""},
		"ssh out":                  {FinderConfig{RDMAAddresses: true}, conn("10.9.1.1:40001", "10.9.1.2:22", "ssh", client, 1e6), "", ""},
		"an HTTP server":           {FinderConfig{RDMAAddresses: true}, conn("10.9.1.1:8080", "10.9.1.2:41001", "llama-server", server, 1e6), "", ""},
		"a range of its own":       {FinderConfig{RDMAAddresses: true, ChosenPorts: [2]uint16{10000, 20000}}, conn("10.9.1.1:10001", "10.9.1.2:20000", "p", client, 1e6), "10.9.1.2:20000", ""},
		"switched off":             {FinderConfig{}, conn("10.9.1.1:40001", "10.9.1.2:41001", "python3", client, 1e6), "", ""},
		"by name":                  {FinderConfig{Processes: []string{"x", "llama-server"}}, conn("10.0.0.1:40001", "10.0.0.2:7000", "llama-server", client, 10), "10.0.0.2:7000", ""},
		"by a long name":           {FinderConfig{Processes: []string{"ggml-rpc-server-cuda"}}, conn("10.0.0.1:40001", "10.0.0.2:7000", "ggml-rpc-server", client, 10), "10.0.0.2:7000", ""},
		"a client of that process": {FinderConfig{Processes: []string{"llama-server"}}, conn("10.0.0.1:8080", "10.0.0.2:40001", "llama-server", server, 1e6), "", ""},
		"another name":             {FinderConfig{Processes: []string{"llama"}}, conn("10.0.0.1:40001", "10.0.0.2:7000", "llama-server", client, 1e6), "", ""},
		"no owner known":           {FinderConfig{Processes: []string{"llama"}}, conn("10.0.0.1:40001", "10.0.0.2:7000", "", client, 1e6), "", ""},
	} {
		found := NewFinder(c.cfg).Look(1, []event.TCPSocket{c.socket}, gid)
		one := func(m map[netip.AddrPort]bool) (at string) {
			for a := range m {
				at = a.String()
			}
			return at
		}
		if one(found.Peers) != c.peer || one(found.Locals) != c.local {
			t.Errorf("%s: %v, want %q and %q", name, found, c.peer, c.local)
		}
	}
}

func TestFinderIsBounded(t *testing.T) {
	f := NewFinder(FinderConfig{Processes: []string{"p"}, Max: 2, Keep: time.Minute})
	look := func(at float64, ports ...uint16) []uint16 {
		var all []event.TCPSocket
		for _, port := range ports {
			all = append(all, event.TCPSocket{Flow: event.Flow{Comm: "p", Peer: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), port)}})
		}
		found := f.Look(seconds(at), all, nil)
		if !slices.Equal(found.Named, found.Ports()) {
			t.Errorf("at %g s: %v of %v are named", at, found.Named, found.Ports())
		}
		return found.Ports()
	}
	for _, c := range []struct {
		at   float64
		see  []uint16
		want []uint16
	}{
		{0, []uint16{1, 2}, []uint16{1, 2}},
		{59, []uint16{2, 3, 4}, []uint16{1, 2}},
		{60, []uint16{3, 4}, []uint16{2, 3}},
		{119, nil, []uint16{3}},
		{120, nil, nil},
	} {
		if got := look(c.at, c.see...); !slices.Equal(got, c.want) {
			t.Errorf("at %g s: %v, want %v", c.at, got, c.want)
		}
	}
	if f.Overflow() != 3 {
		t.Errorf("%d did not fit, want 3", f.Overflow())
	}
	look(200, 7)
	f.SetConfig(FinderConfig{Processes: []string{"q"}})
	if got := look(201); len(got) != 0 {
		t.Errorf("after another configuration: %v", got)
	}
	if c, o := NewFinder(FinderConfig{RDMAAddresses: true}).Wants(nil); c || o {
		t.Error("without any GID it looks at connections")
	}
}

// TestFound: a leg that was found is a leg like any other, and goes as one.
func TestFound(t *testing.T) {
	a := netip.MustParseAddrPort("10.77.3.2:41001")
	over := func(cookie uint64) sock {
		return sock{cookie: cookie, peer: a.String(), acked: 9000, received: 9000, quiet: 5 * time.Second}
	}
	found := Found{Peers: map[netip.AddrPort]bool{a: true}}
	table := timeline(t, Config{Ports: []uint16{}, Forget: time.Minute}, []look{
		{at: 0, sockets: []sock{over(1)}, why: "nobody asked for it"},
		{at: 1, do: func(t *Table) { t.SetFound(found) }, sockets: []sock{over(1)}, want: map[string]string{a.String(): "tcp"}, changes: []string{a.String() + " tcp"}},
		{at: 2, do: func(t *Table) { t.SetConfig(Config{Ports: []uint16{}, Forget: time.Minute}) }, sockets: []sock{over(1)}, want: map[string]string{a.String(): "tcp"}, why: "another configuration"},
		{at: 10, want: map[string]string{a.String(): "tcp"}},
		{at: 12, want: map[string]string{a.String(): "dead no_socket"}, changes: []string{a.String() + " dead no_socket"}},
		{at: 13, do: func(t *Table) { t.SetFound(Found{}) }, want: map[string]string{a.String(): "dead no_socket"}},
		{at: 80},
	})
	flow := over(1).event().Flow
	if name := table.Name(flow); name != "" {
		t.Errorf("after it was forgotten: %q", name)
	}
	table.SetFound(found)
	if name := table.Name(flow); name != a.String() {
		t.Errorf("found anew: %q", name)
	}
	if diff := cmp.Diff([]uint16{41001}, found.Ports()); diff != "" {
		t.Error(diff)
	}
}
