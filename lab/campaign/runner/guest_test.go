//go:build guest

package runner

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"grayfail/internal/testkit"
	"grayfail/lab/campaign/spec"
)

// pinged is what ping -q says: how many came back, and the shortest round trip.
var pinged = regexp.MustCompile(`(\d+) packets transmitted, (\d+) received(?s:.*)rtt min/avg/max/mdev = ([0-9.]+)/`)

// TestGuestCalibration holds netem on a stock kernel to what is seen from
// outside: as many pings are lost as its counter says, about as many as asked
// for, and a delay is a delay. Neighbours are permanent, so that nothing but
// pings crosses.
func TestGuestCalibration(t *testing.T) {
	const (
		far   = "gf-far"
		pings = 10_000
	)
	for _, module := range []string{"veth", "sch_netem"} {
		testkit.Run(t, "modprobe", module)
	}
	testkit.Run(t, "ip", "netns", "add", far)
	testkit.Run(t, "ip", "link", "add", "gf-near", "address", "02:00:00:00:00:01", "type", "veth", "peer", "name", "gf-end", "address", "02:00:00:00:00:02", "netns", far)
	for _, end := range [][]string{
		{"ip", "-n", far, "link", "set", "gf-end", "addrgenmode", "none"},
		{"ip", "link", "set", "gf-near", "addrgenmode", "none"},
		{"ip", "-n", far, "addr", "add", "10.99.0.2/24", "dev", "gf-end"},
		{"ip", "addr", "add", "10.99.0.1/24", "dev", "gf-near"},
		{"ip", "-n", far, "link", "set", "gf-end", "up"},
		{"ip", "link", "set", "gf-near", "up"},
		{"ip", "neigh", "replace", "10.99.0.2", "lladdr", "02:00:00:00:00:02", "dev", "gf-near", "nud", "permanent"},
		{"ip", "-n", far, "neigh", "replace", "10.99.0.1", "lladdr", "02:00:00:00:00:01", "dev", "gf-end", "nud", "permanent"},
	} {
		testkit.Run(t, end[0], end[1:]...)
	}
	// under makes a condition on what the far end sends, and pings it.
	under := func(n int, args ...string) (back int, shortest float64, c count) {
		t.Helper()
		f := newFault(&spec.Condition{Netns: far, Device: "gf-end", Netem: args})
		if err := f.apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		// -f sends the next as soon as the last came back, or after 10 ms. It
		// exits 0 where at least one came back.
		m := pinged.FindStringSubmatch(testkit.Run(t, "ping", "-f", "-q", "-c", fmt.Sprint(n), "10.99.0.2"))
		if m == nil || m[1] != fmt.Sprint(n) {
			t.Fatalf("ping says %q", m)
		}
		back, _ = strconv.Atoi(m[2])
		shortest, _ = strconv.ParseFloat(m[3], 64)
		c, err := f.count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := f.clear(t.Context()); err != nil {
			t.Fatal(err)
		}
		return back, shortest, c
	}
	for percent, standard := range map[int]float64{1: 10, 5: 22} { // of the binomial distribution
		back, _, c := under(pings, "loss", fmt.Sprintf("%d%%", percent))
		t.Logf("loss %d%%: %d of %d pings lost, netem counts %d drops of %d packets", percent, pings-back, pings, *c.Drops, *c.Packets)
		if uint64(pings-back) != *c.Drops || *c.Packets != pings || c.Acted != float64(*c.Drops) {
			t.Errorf("%d pings lost, counted %+v", pings-back, c)
		}
		if want := float64(pings * percent / 100); float64(*c.Drops) < want-6*standard || float64(*c.Drops) > want+6*standard {
			t.Errorf("%d drops, want about %g", *c.Drops, want)
		}
	}
	back, shortest, c := under(20, "delay", "50ms")
	t.Logf("delay 50ms: %d of 20 pings back, the shortest after %g ms", back, shortest)
	if back != 20 || shortest < 50 || *c.Drops != 0 || c.Acted < 20 {
		t.Errorf("%d pings back, the shortest after %g ms, counted %+v", back, shortest, c)
	}
}
