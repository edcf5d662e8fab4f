package export

import (
	"slices"

	"grayfail/event"
)

func (b *builder) rdma(r *event.RDMA) {
	if r == nil {
		return
	}
	for i := range r.Ports {
		p := &r.Ports[i]
		port := portText(p.Port)
		b.gauge(rdmaPortInfo, 1, p.Device, port, p.Netdev, p.LinkLayer, p.Protocol)
		if p.State != "" {
			b.gauge(rdmaPortActive, boolean(p.Active), p.Device, port)
		}
		if p.RateBytesPerSecond > 0 {
			b.gauge(rdmaPortRate, p.RateBytesPerSecond, p.Device, port)
		}
	}
	b.queuePairs(r)
	for i := range r.Counters {
		c := &r.Counters[i]
		b.counter(rdmaHWEvents, c.Value, c.Device, portText(c.Port), c.Event)
	}
}

// queuePairs counts queue pairs. Those of type RC, which applications use,
// have every state on every port, so that the first that fails is a rise from
// 0; other types have the states they are in.
func (b *builder) queuePairs(r *event.RDMA) {
	if r.QueuePairsNS == 0 {
		return
	}
	type key struct{ device, port, kind, state string }
	count := make(map[key]int)
	var order []key
	add := func(k key, n int) {
		if _, known := count[k]; !known {
			order = append(order, k)
		}
		count[k] += n
	}
	for i := range r.Ports {
		for _, state := range []string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"} {
			port := portText(r.Ports[i].Port)
			if state == "RESET" {
				port = "" // on no port yet
			}
			add(key{r.Ports[i].Device, port, "RC", state}, 0)
		}
	}
	for i := range r.QueuePairs {
		q := &r.QueuePairs[i]
		add(key{q.Device, portText(q.Port), q.Type, q.State}, 1)
	}
	for _, k := range order {
		if !slices.Contains(r.Unlisted, k.device) {
			b.gauge(rdmaQueuePairs, float64(count[k]), k.device, k.port, k.kind, k.state)
		}
	}
}
