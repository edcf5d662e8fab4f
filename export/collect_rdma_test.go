package export

import (
	"strings"
	"testing"

	"grayfail/event"
)

func TestRDMA(t *testing.T) {
	m, reg := newMetrics(t, Options{})
	m.Publish(&event.Snapshot{TimeNS: startNS, RDMA: rdmaReading()})
	got := samples(t, reg)
	want := map[string]float64{
		`rdma_port_info{device="mlx5_1",link_layer="Ethernet",netdev="enp1s0f1",port="2",protocol="roce"}`: 1,
		`rdma_port_info{device="mlx5_2",link_layer="",netdev="",port="1",protocol=""}`:                     1,
		`rdma_port_active{device="mlx5_1",port="1"}`:                                                       1,
		`rdma_port_active{device="mlx5_1",port="2"}`:                                                       0,
		`rdma_port_rate_bytes_per_second{device="mlx5_1",port="1"}`:                                        12.5e9,
		`rdma_queue_pairs{device="mlx5_1",port="1",state="RTS",type="GSI"}`:                                1,
		`rdma_queue_pairs{device="mlx5_1",port="1",state="RTS",type="RC"}`:                                 2,
		`rdma_queue_pairs{device="mlx5_1",port="1",state="ERR",type="RC"}`:                                 0,
		`rdma_queue_pairs{device="mlx5_1",port="2",state="RTS",type="RC"}`:                                 0,
		`rdma_queue_pairs{device="mlx5_1",port="",state="RESET",type="RC"}`:                                1,
		`rdma_hw_events_total{device="mlx5_1",event="out_of_sequence",port="1"}`:                           12,
		`rdma_hw_events_total{device="mlx5_1",event="out_of_sequence",port="2"}`:                           0,
	}
	for name, v := range want {
		if g, ok := got[name]; !ok || g != v {
			t.Errorf("%s: %v, %t, want %v", name, g, ok, v)
		}
	}
	// What could not be read is not there: neither the state of a port, nor
	// queue pairs of which only some were listed.
	for name := range got {
		if strings.Contains(name, `"mlx5_2"`) && !strings.HasPrefix(name, "rdma_port_info") {
			t.Errorf("%s", name)
		}
	}
	if got["series_overflow_total"] != 0 {
		t.Errorf("%v series came twice", got["series_overflow_total"])
	}

	// Switched off is not zero.
	r := rdmaReading()
	r.QueuePairs, r.QueuePairsNS = nil, 0
	m.Publish(&event.Snapshot{TimeNS: startNS + 1, RDMA: r})
	for name := range samples(t, reg) {
		if strings.HasPrefix(name, "rdma_queue_pairs") {
			t.Errorf("%s while they are not listed", name)
		}
	}
}
