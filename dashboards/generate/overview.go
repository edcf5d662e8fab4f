package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// overview answers, from top to bottom: is anything wrong, which requests, who
// ate the time, how do the legs stand, can the exporter be believed.
func overview() *dashboard.DashboardBuilder {
	return board("grayfail-overview", "Gray failures: overview",
		"Requests that succeed at below half of their usual token rate, and the leg that ate the time.",
		part{"Now", now()},
		part{"Requests", requests()},
		part{"Who ate the time", blame()},
		part{"Legs", legs()},
		part{"This host and the exporter", host()},
	)
}

func now() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		number("Open episodes", "Runs of slow requests that are going on, over models and phases.", "none", 1,
			q(`sum(grayfail_episode_active{@m})`)),
		number("Slow requests", "Share of slow verdicts in those that could be judged, over the time shown.", "percentunit", 0.05,
			q(`sum(increase(grayfail_request_verdicts_total{@m, verdict="slow"}[$__range])) / sum(increase(grayfail_request_verdicts_total{@m, verdict=~"ok|slow"}[$__range]))`)),
		number("Time lost", "Seconds that slow requests lost against their baseline since the exporter started.", "s", 1,
			q(`sum(grayfail_slow_excess_seconds_total{@ml})`)),
		number("Legs in fallback", "Legs that could use RDMA and carry their payload over TCP. No data: no leg's transport is known.", "none", 1,
			q(`sum(grayfail_leg_fallback{@l})`)),
		number("Collectors down", "Collectors that do not work; the table at the bottom says why.", "none", 1,
			q(`sum(1 - grayfail_collector_up{@})`)),
		number("Events lost", "Kernel events that found no room, over the time shown. Ledgers of that time may fall short.", "none", 1,
			q(`sum(increase(grayfail_events_lost_total{@}[$__range]))`)),
	}
}

func requests() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		lines("Token rate and baseline", "Mean token rate of the requests that ended, and the rate they are judged against (the model's busiest stratum).", "suffix: tok/s", 12,
			query{q(`sum by (source, model, phase) (rate(grayfail_request_tokens_per_second_sum{@m}[$__rate_interval])) / sum by (source, model, phase) (rate(grayfail_request_tokens_per_second_count{@m}[$__rate_interval]))`), "{{model}} {{phase}} mean"},
			query{q(`grayfail_baseline_tokens_per_second{@m}`), "{{model}} {{phase}} baseline"}),
		below(lines("Normalized rate", "Rate of a request as a share of its baseline: median and lowest tenth. Below 0.5 is slow.", "none", 12,
			query{quantile("0.5", "grayfail_request_normalized_rate", "@m", "model, phase"), "{{model}} {{phase}} median"},
			query{quantile("0.1", "grayfail_request_normalized_rate", "@m", "model, phase"), "{{model}} {{phase}} p10"}), 0.5),
		stacked(lines("Verdicts", "Verdicts each second. Unknown: no ready baseline yet, or too few tokens.", "reqps", 8,
			query{q(`sum by (model, phase, verdict) (rate(grayfail_request_verdicts_total{@m}[$__rate_interval]))`), "{{model}} {{phase}} {{verdict}}"})),
		lines("Share of slow verdicts", "Slow verdicts as a share of those that could be judged.", "percentunit", 8,
			query{q(`sum by (model, phase) (rate(grayfail_request_verdicts_total{@m, verdict="slow"}[$__rate_interval])) / sum by (model, phase) (rate(grayfail_request_verdicts_total{@m, verdict=~"ok|slow"}[$__rate_interval]))`), "{{model}} {{phase}}"}),
		lines("Request duration", "From the start to the end of a request, and to its first token.", "s", 8,
			query{quantile("0.5", "grayfail_request_duration_seconds", "@m", "model"), "{{model}} duration median"},
			query{quantile("0.9", "grayfail_request_duration_seconds", "@m", "model"), "{{model}} duration p90"},
			query{quantile("0.9", "grayfail_request_time_to_first_token_seconds", "@m", "model"), "{{model}} first token p90"}),
	}
}

func blame() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		stacked(lines("Time lost by leg and cause", "Seconds lost by slow requests since the exporter started, by the leg they were lost on. No leg: this host's own time.", "s", 12,
			query{q(`sum by (leg, cause) (grayfail_slow_excess_seconds_total{@ml})`), "{{leg}} {{cause}}"})),
		withRunbook(states("Episodes", "Runs of slow requests with the cause and leg that they are blamed on.", 12,
			query{q(`max by (model, cause, leg) (grayfail_episode_cause{@ml})`), "{{model}}: {{cause}} {{leg}}"}), "GrayfailPathNamed"),
		lines("Exchange time, p99", "From the last send of a request on a leg to the last byte of its reply.", "s", 12,
			query{quantile("0.99", "grayfail_tcp_exchange_seconds", "@l", "leg"), "{{leg}}"}),
		lines("Stalls inside replies, p99", "Largest gap between segments inside one reply. From 190 ms up something was lost, or the peer stood still.", "s", 12,
			query{quantile("0.99", "grayfail_tcp_exchange_stall_seconds", "@l", "leg"), "{{leg}}"}),
	}
}

func legs() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		list("Transport of every leg", "How each leg carries its payload now, from the kernel's view.", 24,
			q(`(grayfail_leg_transport{@l} == 1) * on (job, instance, leg) group_left (role, netns, local, peer, device, rdma_device, rdma_port) topk by (job, instance, leg) (1, grayfail_leg_info{@l})`), "",
			"instance", "leg", "transport", "role", "peer", "local", "device", "rdma_device", "rdma_port", "netns"),
		lines("Retransmits", "Retransmitted buffers by what made the kernel send again. fast and rto: something was lost; tlp and cwr alone are no evidence of loss.", "pps", 8,
			query{q(`sum by (leg, kind) (rate(grayfail_tcp_retransmits_total{@l}[$__rate_interval]))`), "{{leg}} {{kind}}"}),
		lines("Out-of-order segments", "Segments that arrived ahead of a hole: replies are being lost on the way to this host.", "pps", 8,
			query{q(`sum by (leg) (rate(grayfail_tcp_out_of_order_packets_total{@l}[$__rate_interval]))`), "{{leg}}"}),
		lines("Round-trip time", "Smoothed and smallest round-trip time of the leg's busiest socket.", "s", 8,
			query{q(`grayfail_tcp_rtt_seconds{@l}`), "{{leg}} smoothed"},
			query{q(`grayfail_tcp_min_rtt_seconds{@l}`), "{{leg}} min"}),
		lines("Payload", "Payload without retransmits; sent is what the peer has acknowledged.", "Bps", 12,
			query{q(`sum by (leg, direction) (rate(grayfail_tcp_payload_bytes_total{@l}[$__rate_interval]))`), "{{leg}} {{direction}}"}),
		lines("Connections", "Established connections of each leg.", "none", 12,
			query{q(`sum by (leg) (grayfail_tcp_connections{@l})`), "{{leg}}"}),
	}
}

func host() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		lines("Drops by queueing discipline", "Packets dropped on their way out. Root and child count the same packets: read them one by one.", "pps", 8,
			query{q(`rate(grayfail_qdisc_drops_total{@}[$__rate_interval])`), "{{netns}} {{device}} {{kind}} {{handle}} {{parent}}"}),
		lines("Backlog", "Bytes waiting in queueing disciplines.", "bytes", 8,
			query{q(`grayfail_qdisc_backlog_bytes{@}`), "{{netns}} {{device}} {{kind}} {{handle}} {{parent}}"}),
		list("Collectors", "1: works, perhaps with something missing; 0: does not. The reason says what a collector cannot do.", 8,
			q(`(grayfail_collector_problem_info{@} * on (job, instance, collector) group_left () grayfail_collector_up{@}) or on (job, instance, collector) grayfail_collector_up{@}`), "up",
			"instance", "collector", "reason"),
		lines("Kernel events lost", "Events that found no room in the buffer.", "cps", 8,
			query{q(`sum by (collector) (rate(grayfail_events_lost_total{@}[$__rate_interval]))`), "{{collector}}"}),
		lines("Time of a collection", "Duration of each collector's last try.", "s", 8,
			query{q(`max by (collector) (grayfail_collector_duration_seconds{@})`), "{{collector}}"}),
		lines("Series left out", "Observations and series that went to \"other\" or were left out because a bound was reached.", "cps", 8,
			query{q(`sum by (instance) (rate(grayfail_series_overflow_total{@}[$__rate_interval]))`), "{{instance}}"}),
	}
}
