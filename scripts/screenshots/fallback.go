package main

import (
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"grayfail/event"
	"grayfail/export"
)

// fallbackPicture is of a five-leg hub of which two legs run over TCP.
func fallbackPicture(cam *camera) error {
	words := map[string]string{
		"port_not_probed": "10.9.2.1 lives on port 2 of mlx4_0, the process holds queue pairs on port 1 only: it asked port 1. Give the leg an address of port 1, or the engine a build that asks every port",
		"memlock":         "the memory lock limit of the process leaves no room for the buffers of another RDMA connection. Raise it (LimitMEMLOCK=infinity, --ulimit memlock=-1) and restart the engine",
	}
	api := export.NewAPI(func(l *event.Leg) string { return words[l.Reason] })
	now := time.Now()
	leg := func(name, peer, device string, port int, transport event.Transport, reason string, rtt time.Duration) event.Leg {
		return event.Leg{
			Name: name, Peer: netip.MustParseAddrPort(peer), RDMADevice: device, RDMAPort: port, Transport: transport, Reason: reason,
			RTT: rtt, Connections: 1, Process: "llama-server", PID: 714,
		}
	}
	snapshot := &event.Snapshot{
		TimeNS: now.UnixNano(),
		Legs: []event.Leg{
			leg("w1", "10.9.100.1:50052", "mlx4_0", 1, event.TransportRDMA, "", 61*time.Microsecond),
			leg("w2", "10.9.100.2:50052", "mlx4_0", 1, event.TransportRDMA, "", 58*time.Microsecond),
			leg("w3", "10.9.100.3:50052", "mlx4_0", 2, event.TransportFallback, "port_not_probed", 74*time.Microsecond),
			leg("w4", "10.9.100.4:50052", "mlx5_0", 1, event.TransportRDMA, "", 55*time.Microsecond),
			leg("w5", "10.9.100.5:50052", "mlx5_0", 1, event.TransportFallback, "memlock", 69*time.Microsecond),
		},
		Baselines:    []event.Baseline{{Source: "main", Model: "llama-3.3-70b", Phase: event.PhaseDecode, Concurrency: "1", Rate: 41.5, Samples: 256, State: event.BaselineReady, Requests: 400}},
		ConfigReload: event.ConfigReload{Successful: true, TimeNS: now.UnixNano()},
	}
	for _, c := range []string{"qdisc", "rdma", "requests", "tcp_events", "tcp_sockets"} {
		snapshot.Statuses = append(snapshot.Statuses, event.Status{Collector: c, Availability: event.Up})
	}
	for i := range 60 {
		rate, usual := 41.5+2*math.Sin(float64(i)), 41.5
		r := rate / usual
		end := now.Add(time.Duration(i-60) * 4 * time.Second).UnixNano()
		api.AddRow(event.Row{Source: "main", Model: "llama-3.3-70b", Phase: event.PhaseDecode, Rate: &rate, Baseline: &usual, R: &r, Verdict: event.VerdictOK, EndNS: end})
	}
	api.Publish(snapshot)
	mux := http.NewServeMux()
	api.Register(mux)
	s := httptest.NewServer(mux)
	defer s.Close()
	defer api.Close()
	return cam.take("fallback", s.URL+"/", desk, false)
}
