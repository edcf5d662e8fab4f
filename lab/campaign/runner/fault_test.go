package runner

import (
	"strings"
	"testing"
	"time"

	"grayfail/lab/campaign/report"
	"grayfail/lab/campaign/spec"
)

// TestClearWhatIsGone: a device or namespace that is not there any more holds
// no fault, and stops no campaign.
func TestClearWhatIsGone(t *testing.T) {
	for name, c := range map[string]spec.Condition{
		"netem, no namespace":    {Netns: "gf-there-is-none", Device: "eth0", Netem: []string{"loss", "5%"}},
		"netem, no device":       {Device: "gf-none0", Netem: []string{"loss", "5%"}},
		"nftables, no namespace": {Netns: "gf-there-is-none", Device: "eth0", DropPercent: 5},
		"nftables, no device":    {Device: "gf-none0", DropPercent: 5},
		"a process that ended":   {Pause: spec.Pause{PID: 1 << 22, Percent: 50, Period: spec.Duration(time.Second)}},
	} {
		if err := newFault(&c).clear(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestParseQdiscs: ours is told by its handle, among others and its children.
func TestParseQdiscs(t *testing.T) {
	got, err := parseQdiscs([]byte(`[{"kind":"mq","handle":"0:","packets":1},{"kind":"netem","handle":"f417:","root":true,"bytes":10,"packets":95,"drops":5,"overlimits":0}]`))
	if err != nil || got == nil || *got != (listed{Kind: "netem", Handle: "f417:", Packets: 95, Drops: 5}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := parseQdiscs([]byte(`[]`)); got != nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseQdiscs([]byte(`Cannot find device`)); err == nil {
		t.Error("no JSON is no error")
	}
}

func TestParseTCP(t *testing.T) {
	text := "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm RetransSegs InErrs\nTcp: 1 42 0\nUdp: InDatagrams\nUdp: 5\n" +
		"TcpExt: SyncookiesSent TCPTimeouts TCPLostRetransmit\nTcpExt: 0 7 3\nIpExt: InNoRoutes\nIpExt: 0\n"
	if got, err := parseTCP(text); err != nil || got != (tcpCounts{42, 7}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "Tcp: RetransSegs\nTcp: 42\n", strings.Replace(text, "42", "x", 1), "Tcp:\nTcp:\n"} {
		if _, err := parseTCP(bad); err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
}

// TestJudge: whether a condition acted is asked of all runs of a slot, so that
// a request that lost nothing at 1% counts.
func TestJudge(t *testing.T) {
	run := func(before, after float64) report.Run {
		return report.Run{Valid: true, Injector: &report.Injector{Kind: "netem", CounterBefore: &before, CounterAfter: &after}}
	}
	c := &spec.Condition{Name: "loss-1", Device: "eth0", Netem: []string{"loss", "1%"}}
	all := []report.Run{run(0, 0), run(0, 2), run(2, 2)}
	judge(c, all, nil)
	for i, r := range all {
		if !r.Valid || !r.Injector.Acted {
			t.Errorf("run %d: %+v", i, r)
		}
	}
	all = []report.Run{run(0, 0), run(0, 0)}
	judge(c, all, nil)
	for i, r := range all {
		if r.Valid || r.Injector.Acted || !strings.Contains(r.InvalidReason, "did not act") {
			t.Errorf("run %d: %+v", i, r)
		}
	}
}

func FuzzParseTCP(f *testing.F) {
	f.Add("Tcp: RetransSegs\nTcp: 42\nTcpExt: TCPTimeouts\nTcpExt: 7\n")
	f.Add("Tcp:\nTcp: 1\n\n")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = parseTCP(text) })
}

func FuzzParseQdiscs(f *testing.F) {
	f.Add([]byte(`[{"kind":"netem","handle":"f417:","packets":1,"drops":1}]`))
	f.Fuzz(func(t *testing.T, out []byte) {
		if q, err := parseQdiscs(out); err != nil && q != nil {
			t.Error("an error and a reading")
		}
	})
}
