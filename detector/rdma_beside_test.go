package detector_test

import (
	"strings"
	"testing"
	"time"

	"grayfail/detector"
	"grayfail/event"
)

// TestRDMABesideTCP: legs a and b are clocked, c runs over RDMA. What is on no
// leg may be c's; what is on b is not.
func TestRDMABesideTCP(t *testing.T) {
	retries := func(nowNS int64, count uint64) event.Record {
		return &event.RDMAStep{FromNS: nowNS, TimeNS: nowNS + 1e9, Device: "rxe0", Port: 1, Event: "completer_retry_err", Meaning: event.RDMARetransmission, Count: count}
	}
	for _, c := range []struct {
		name   string
		local  time.Duration
		fault  func(int, *event.Exchange)
		count  uint64
		cause  event.Cause
		leg    string
		detail string
	}{
		{"c retries", 20 * time.Millisecond, nil, 30, event.CauseLoss, "c", "rdma: 30 completer_retry_err on port rxe0/1"},
		{"c does not", 20 * time.Millisecond, nil, 0, event.CauseLocal, "", "; legs over RDMA, whose exchanges are not seen: 1"},
		{"b is late, and c retries a little", time.Millisecond, late(10 * time.Millisecond), 3, event.CauseDelay, "b", "ACKed late"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newEngine("a", "b")
			records := []event.Record{&event.LegChange{TimeNS: g.nowNS, Leg: "c", Transport: event.TransportRDMA, RDMADevice: "rxe0", RDMAPort: 1}}
			records = append(records, g.requests(15, "ok")...)
			g.local, g.fault = c.local, c.fault
			records = append(records, retries(g.nowNS, c.count))
			records = append(records, g.requests(1, "bad")...)
			rows := of(play(detector.DefaultConfig(), records), "bad", event.PhaseDecode)
			all(t, rows, 1, event.VerdictSlow, c.cause, c.leg)
			if !strings.Contains(rows[0].Detail, c.detail) {
				t.Errorf("%q, want %q", rows[0].Detail, c.detail)
			}
		})
	}
}
