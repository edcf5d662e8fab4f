package detector

import (
	"testing"

	"grayfail/event"
)

// What a leg went through on its way off RDMA does not hide that it left.
func TestLeavingRDMA(t *testing.T) {
	const (
		rdma     = event.TransportRDMA
		tcp      = event.TransportTCP
		fallback = event.TransportFallback
	)
	for _, c := range []struct {
		name string
		by   []event.Transport
		left int // the step at which it left; -1: it did not
	}{
		{"at once", []event.Transport{rdma, fallback}, 1},
		{"to plain TCP", []event.Transport{rdma, tcp}, 1},
		{"through dead", []event.Transport{rdma, event.TransportDead, fallback}, 2},
		{"through half open", []event.Transport{rdma, event.TransportHalfOpen, fallback}, 2},
		{"through all that say nothing", []event.Transport{
			rdma, event.TransportStalled, event.TransportDead, event.TransportHalfOpen, event.TransportIdle,
			event.TransportUnknown, event.TransportQueued, fallback,
		}, 7},
		{"and back", []event.Transport{rdma, event.TransportDead, fallback, rdma}, -1},
		{"dead and back", []event.Transport{rdma, event.TransportDead, rdma}, -1},
		{"never on it", []event.Transport{event.TransportDead, tcp, fallback}, -1},
	} {
		l := &leg{}
		for i, by := range c.by {
			l.setTransport(event.LegChange{TimeNS: int64(1 + i), Leg: "a", Transport: by})
		}
		if want := int64(1 + c.left); l.leftRDMANS != want {
			t.Errorf("%s: left RDMA at %d, want %d", c.name, l.leftRDMANS, want)
		}
	}
}
