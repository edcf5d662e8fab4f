package main

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"grayfail/event"
)

// TestLegsText: what an operator reads of a leg that fell back.
func TestLegsText(t *testing.T) {
	leg := event.Leg{
		Name: "rpc-b", Local: netip.MustParseAddr("10.9.2.1"), Peer: netip.MustParseAddrPort("10.9.2.2:50052"), Device: "ens1f1",
		RDMADevice: "mlx4_0", RDMAPort: 2, Transport: event.TransportFallback, Reason: "port_not_probed", Expected: "auto",
		QueuePairs: []event.QueuePair{{Port: 1, State: "RTS"}, {Port: 1, State: "RTS"}, {Port: 0, State: "RESET"}},
	}
	for reason, want := range map[string]string{
		"port_not_probed": "mlx4_0/2  fallback   auto      -    0        -        10.9.2.1 lives on port 2 of mlx4_0, the process holds queue pairs on port 1 only: it asked port 1. Give",
		"port_down":       "port 2 of mlx4_0 is not ACTIVE.",
		"no_queue_pair":   "the process made no queue pair on port 2 of mlx4_0 for this leg.",
		"something_new":   "something_new",
		"":                " -\n",
	} {
		leg.Reason = reason
		var out bytes.Buffer
		if err := printLegs(&out, []event.Leg{leg}); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v\n%s", reason, err, out.String())
		}
	}
	leg.Reason, leg.QueuePairs = "port_not_probed", nil
	if got := reasonText(&leg); !strings.Contains(got, "the process holds no queue pair there") {
		t.Error(got)
	}
}
