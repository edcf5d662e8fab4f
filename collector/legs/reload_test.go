package legs

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSetConfig(t *testing.T) {
	peerC := "10.77.3.2:50052"
	static := func(name, peer string) Static { return Static{Name: name, Peer: netip.MustParseAddrPort(peer)} }
	table := New(Config{Ports: []uint16{50052}, Static: []Static{static("b", peerB)}})
	read := func(at float64) {
		table.Update(seconds(at), sockets(sock{cookie: 1, peer: peerB, acked: 77, quiet: time.Hour}, sock{cookie: 2, peer: peerC, acked: 88, quiet: time.Hour}), []NetnsInfo{ownNet})
	}
	read(0)
	table.Changes()
	for i, step := range []struct {
		cfg     Config
		want    []string
		changes []string
	}{
		{Config{Ports: []uint16{50052}, Static: []Static{static("b", peerB)}}, []string{peerC, "b"}, nil},
		{Config{Ports: []uint16{50052}, Static: []Static{static("bee", peerB), static("c", peerC)}}, []string{"bee", "c"}, []string{"bee", "c"}},
		{Config{Ports: []uint16{50052}, Static: []Static{static("c", peerB), static("bee", peerC)}}, []string{"bee", "c"}, []string{"bee", "c"}},
		{Config{Ports: []uint16{50052}, Static: []Static{static("d", "10.0.0.9:1")}}, []string{peerB, peerC, "d"}, []string{peerB, peerC}},
		{Config{Static: []Static{static("b", peerB)}}, []string{"b"}, []string{"b"}},
		{Config{Ports: []uint16{1}}, nil, nil},
		{Config{Ports: []uint16{50052}}, []string{peerB, peerC}, []string{peerB, peerC}},
	} {
		table.SetConfig(step.cfg)
		read(float64(i + 1))
		if diff := cmp.Diff(step.want, names(table)); diff != "" {
			t.Errorf("step %d:\n%s", i, diff)
		}
		var changed []string
		for _, c := range table.Changes() {
			changed = append(changed, c.Leg)
		}
		if diff := cmp.Diff(step.changes, changed); diff != "" {
			t.Errorf("step %d, changes:\n%s", i, diff)
		}
		for _, l := range table.Legs() {
			if want := map[string]uint64{peerB: 77, peerC: 88}[l.Peer.String()]; l.BytesAcked != want {
				t.Errorf("step %d: %s has %d bytes, want %d", i, l.Name, l.BytesAcked, want)
			}
			if got := table.Name(flow(l.Peer.String())); got != l.Name {
				t.Errorf("step %d: Name = %q, want %q", i, got, l.Name)
			}
		}
	}
}
