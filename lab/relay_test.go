package lab_test

import (
	"strings"
	"testing"
	"time"

	"grayfail/lab"
)

// TestRelay: over the relay the kernels' own RTT shows the delay that was asked
// for, which a TCP proxy would hide.
func TestRelay(t *testing.T) {
	c := start(t, lab.Options{Instance: "relay", Engine: lab.EngineStandin, Relay: true})
	usual := request(t, c).Rate()
	impair := func(d lab.Direction, i lab.Impairment) lab.Injector {
		t.Helper()
		in, err := c.NewImpair(lab.LegB, d, i)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	for _, in := range []lab.Injector{
		impair(lab.Replies, lab.Delay(20*time.Millisecond)),
		impair(lab.Requests, lab.Impairment{Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond}),
		impair(lab.Replies, lab.Impairment{Loss: 5}),
		impair(lab.Replies, lab.Impairment{Delay: 20 * time.Millisecond, Reorder: 5}),
		impair(lab.Replies, lab.Impairment{Duplicate: 50}),
	} {
		t.Run(in.String(), func(t *testing.T) {
			if err := c.Inject(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			rate := request(t, c).Rate()
			link, err := c.Link(lab.LegB)
			if err != nil {
				t.Fatal(err)
			}
			sockets, err := c.ExecIn(t.Context(), c.Coordinator, "ss", "-tinH", "dst", link.Peer().String())
			if err != nil {
				t.Fatal(err)
			}
			e, err := c.Eject(in)
			if err != nil {
				t.Error(err)
			}
			t.Logf("%.0f of %.0f tok/s; %s; %s", rate, usual, e, field(sockets, "rtt:"))
			if strings.HasPrefix(in.String(), "delay") && rate > 45 { // 20 ms and more for each token
				t.Errorf("%.1f tok/s in spite of the delay", rate)
			}
			wait(t, "the usual rate", func() bool { return request(t, c).Rate() > 0.8*usual })
		})
	}
	if _, err := start(t, lab.Options{Instance: "norelay", Engine: lab.EngineStandin}).NewImpair(lab.LegB, lab.Replies, lab.Delay(1)); err == nil {
		t.Error("an impairment without a relay was accepted")
	}
}

func field(s, prefix string) string {
	for f := range strings.FieldsSeq(s) {
		if strings.HasPrefix(f, prefix) {
			return f
		}
	}
	return ""
}
