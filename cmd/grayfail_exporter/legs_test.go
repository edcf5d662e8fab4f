package main

import (
	"testing"

	"grayfail/event"
)

// TestLegInTrouble is the contract's exit 1 of legs.
func TestLegInTrouble(t *testing.T) {
	absent := event.Leg{Transport: event.TransportUnknown, Expected: "rdma"}
	present := absent
	present.Connections = 1
	if !legInTrouble(&absent) || legInTrouble(&present) {
		t.Error("RDMA expected: an absent leg is trouble, one that cannot be judged yet is not")
	}
	for _, tt := range []struct {
		transport event.Transport
		expected  string
		want      bool
	}{
		{event.TransportTCP, "auto", false}, {event.TransportTCP, "tcp", false}, {event.TransportTCP, "rdma", true},
		{event.TransportRDMA, "auto", false}, {event.TransportRDMA, "rdma", false}, {event.TransportRDMA, "tcp", true},
		{event.TransportIdle, "auto", false}, {event.TransportUnknown, "auto", false},
		{event.TransportFallback, "auto", true}, {event.TransportFallback, "tcp", true},
		{event.TransportQueued, "auto", true}, {event.TransportStalled, "auto", true},
		{event.TransportHalfOpen, "auto", true}, {event.TransportDead, "auto", true},
	} {
		l := event.Leg{Transport: tt.transport, Expected: tt.expected}
		if got := legInTrouble(&l); got != tt.want {
			t.Errorf("%s, expected %s: %v", tt.transport, tt.expected, got)
		}
	}
}
