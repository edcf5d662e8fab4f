package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// legsBoard answers for one leg: what does it run over, why not over RDMA,
// where do its packets wait or get lost.
func legsBoard() *dashboard.DashboardBuilder {
	return board("grayfail-legs", "Gray failures: legs and RDMA",
		"How each leg carries its payload and why, its exchanges, retransmits and round-trip times, the queues it leaves through, and the RDMA ports.",
		part{"Now", legNumbers()},
		part{"Transport", transports()},
		part{"TCP", tcp()},
		part{"Queues on the way out", queues()},
		part{"RDMA", rdma()},
	)
}

func legNumbers() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		figure("Legs", "Ways from the hosts to their peers that are known.", "none",
			q(`count(count by (job, instance, leg) (grayfail_leg_info{@l}))`)),
		number("In fallback", "Legs that could use RDMA and carry their payload over TCP. No data: no leg's transport is known.", "none", 1,
			q(`sum(grayfail_leg_fallback{@l})`)),
		number("Not moving", "Legs that are dead, half open, stalled or queued behind another client.", "none", 1,
			q(`sum(grayfail_leg_transport{@l, transport=~"dead|half_open|stalled|queued"})`)),
		figure("On RDMA", "Legs that carry their payload over RDMA.", "none",
			q(`sum(grayfail_leg_transport{@l, transport="rdma"})`)),
		number("RDMA ports down", "Ports that are not ACTIVE. No data: no RDMA device. The second port of many cards is down for good.", "none", 1,
			q(`sum(1 - grayfail_rdma_port_active{@})`)),
		number("Time in fallback", "Time that legs have spent in fallback, over the time shown.", "s", 1,
			q(`sum(increase(grayfail_leg_fallback_seconds_total{@l}[$__range]))`)),
	}
}

func transports() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		list("Transport and reason", "What every leg runs over now. Columns of RDMA are empty where the leg's address is in no GID table.", 12,
			q(`(grayfail_leg_transport{@l} == 1) * on (job, instance, leg) group_left (peer, device, rdma_device, rdma_port) topk by (job, instance, leg) (1, grayfail_leg_info{@l})`), "",
			"instance", "leg", "transport", "peer", "device", "rdma_device", "rdma_port"),
		withRunbook(list("Fallbacks", "Legs in fallback, with the reason that was concluded: port_not_probed, memlock, peer_without_rdma, opted_out, port_down, no_gid, not_roce_v2, no_device_access, no_queue_pair.", 12,
			q(`(grayfail_leg_fallback{@l} == 1) * on (job, instance, leg) group_left (local, peer, rdma_device, rdma_port) topk by (job, instance, leg) (1, grayfail_leg_info{@l})`), "",
			"instance", "leg", "reason", "local", "peer", "rdma_device", "rdma_port"), "GrayfailLegFallback", "GrayfailLegNotRDMA"),
		withRunbook(states("Transport over time", "When each leg was on which transport.", 16,
			query{q(`max by (instance, leg, transport) (grayfail_leg_transport{@l} == 1)`), "{{leg}} {{transport}}"}), "GrayfailLegDead", "GrayfailLegStuck"),
		lines("Share of time in fallback", "1 while a leg is in fallback all the time.", "percentunit", 8,
			query{q(`rate(grayfail_leg_fallback_seconds_total{@l}[$__rate_interval])`), "{{leg}}"}),
	}
}

func tcp() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		lines("Exchange time", "From the last send of a request on a leg to the last byte of its reply. A leg on RDMA has none.", "s", 12,
			query{quantile("0.5", "grayfail_tcp_exchange_seconds", "@l", "leg"), "{{leg}} median"},
			query{quantile("0.99", "grayfail_tcp_exchange_seconds", "@l", "leg"), "{{leg}} p99"}),
		withRunbook(lines("Stalls inside replies", "Largest gap between segments inside one reply, p99. From 190 ms up something was lost, or the peer stood still.", "s", 12,
			query{quantile("0.99", "grayfail_tcp_exchange_stall_seconds", "@l", "leg"), "{{leg}}"}), "GrayfailPathNamed"),
		lines("Retransmits by kind", "Retransmitted buffers by what made this host's kernel send again. fast and rto: something was lost; tlp and cwr alone are no evidence of loss.", "pps", 8,
			query{q(`sum by (leg, kind) (rate(grayfail_tcp_retransmits_total{@l}[$__rate_interval]))`), "{{leg}} {{kind}}"}),
		lines("Segments out of order", "Segments that arrived ahead of a hole: the peer's segments are being lost on the way to this host.", "pps", 8,
			query{q(`sum by (leg) (rate(grayfail_tcp_out_of_order_packets_total{@l}[$__rate_interval]))`), "{{leg}}"}),
		lines("RTT and its minimum", "Smoothed round-trip time of the leg's busiest socket, and the smallest seen. Far above the minimum: something queues.", "s", 8,
			query{q(`grayfail_tcp_rtt_seconds{@l}`), "{{leg}} smoothed"},
			query{q(`grayfail_tcp_min_rtt_seconds{@l}`), "{{leg}} min"}),
		lines("Payload by direction", "Payload without retransmits; sent is what the peer has acknowledged. Over RDMA it stands still.", "Bps", 12,
			query{q(`sum by (leg, direction) (rate(grayfail_tcp_payload_bytes_total{@l}[$__rate_interval]))`), "{{leg}} {{direction}}"}),
		lines("Established connections", "Connections of each leg. One that keeps coming and going is an engine that reconnects.", "none", 12,
			query{q(`sum by (leg) (grayfail_tcp_connections{@l})`), "{{leg}}"}),
	}
}

func queues() []cog.Builder[dashboard.Panel] {
	const name = "{{netns}} {{device}} {{kind}} {{handle}} {{parent}}"
	return []cog.Builder[dashboard.Panel]{
		lines("Qdisc drops", "Packets dropped on their way out of this host. Root and child count the same packets: read them one by one.", "pps", 8,
			query{q(`rate(grayfail_qdisc_drops_total{@}[$__rate_interval])`), name}),
		lines("Qdisc backlog", "Bytes that wait in queueing disciplines.", "bytes", 8,
			query{q(`grayfail_qdisc_backlog_bytes{@}`), name}),
		lines("Over the limit", "How often a queueing discipline held packets back by its rate limit.", "cps", 8,
			query{q(`rate(grayfail_qdisc_overlimits_total{@}[$__rate_interval])`), name}),
	}
}

func rdma() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		stacked(lines("Queue pairs by state", "Queue pairs of each port by type and state. RTS: ready to send. Read every 5 s; absent where they cannot be listed.", "none", 8,
			query{q(`sum by (instance, device, port, type, state) (grayfail_rdma_queue_pairs{@})`), "{{instance}} {{device}}/{{port}} {{type}} {{state}}"})),
		withRunbook(lines("Port active", "1: the port is ACTIVE. 0: no leg can run over it.", "none", 8,
			query{q(`grayfail_rdma_port_active{@}`), "{{instance}} {{device}}/{{port}}"}), "GrayfailRDMAPortDown"),
		withRunbook(lines("Link rate", "Rate at which the link of a port came up. One below its neighbours: cable, lanes or speed.", "Bps", 8,
			query{q(`grayfail_rdma_port_rate_bytes_per_second{@}`), "{{instance}} {{device}}/{{port}}"}), "GrayfailRDMALinkSlow"),
		lines("Hardware events", "Counters of a port by the driver's names. They are the port's: legs that share it share them.", "cps", 12,
			query{q(`rate(grayfail_rdma_hw_events_total{@}[$__rate_interval]) > 0`), "{{instance}} {{device}}/{{port}} {{event}}"}),
		list("RDMA ports", "Every port, its interface and protocol.", 12,
			q(`grayfail_rdma_port_info{@}`), "",
			"instance", "device", "port", "netdev", "link_layer", "protocol"),
	}
}
