package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// fleetBoard answers over all hosts: who is slow, which way is blamed, and what
// the host at its other end says of its own queues.
func fleetBoard() *dashboard.DashboardBuilder {
	return board("grayfail-fleet", "Gray failures: fleet",
		"All exporters at once: coordinators with slow requests, legs that are named, and drops and retransmits that the peers count themselves.",
		part{"Now", fleetNumbers()},
		part{"Coordinators", coordinators()},
		part{"What the peers count themselves", peers()},
		part{"Exporters", exporters()},
	)
}

// peerAddress: the legs that a host opened, each with the address of its
// peer. hostAddresses: those that one host alone has, as bridges of containers
// have the same everywhere.
const (
	peerAddress   = `label_replace(topk by (job, instance, leg) (1, grayfail_leg_info{@l, role="client"}), "address", "$1", "peer", "\\[?(.*?)\\]?:[0-9]+")`
	hostAddresses = `(label_replace(grayfail_host_info{@}, "host", "$1", "instance", "(.*)") and on (job, address) (count by (job, address) (grayfail_host_info{@}) == 1))`
)

func fleetNumbers() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		withRunbook(figure("Exporters", "Exporters that are being scraped.", "none",
			q(`count(grayfail_build_info{@})`)), "GrayfailExporterAbsent"),
		number("Hosts with an episode", "Coordinators on which a run of slow requests is going on.", "none", 1,
			q(`sum(max by (job, instance) (grayfail_episode_active{@m}))`)),
		number("Legs named", "Legs that an open episode is blamed on.", "none", 1,
			q(`count(sum by (job, instance, leg) (grayfail_episode_cause{@ml, leg!=""}) > 0)`)),
		number("Legs off RDMA", "Legs of any host in fallback.", "none", 1,
			q(`sum(grayfail_leg_fallback{@l})`)),
		number("Blind spots", "Collectors that do not work, over all hosts. One of them may be RDMA on hosts without it.", "none", 1,
			q(`sum(1 - grayfail_collector_up{@})`)),
		number("Versions", "Different versions of the exporter that are running.", "none", 2,
			q(`count(count by (version, revision) (grayfail_build_info{@}))`)),
	}
}

func coordinators() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		withRunbook(stacked(lines("Slow requests by coordinator", "Slow verdicts in each interval, by the host that saw them.", "none", 8,
			query{q(`sum by (instance, model) (increase(grayfail_request_verdicts_total{@m, verdict="slow"}[$__rate_interval]))`), "{{instance}} {{model}}"})), "GrayfailSlowRequests"),
		lines("Slow share by coordinator", "Slow verdicts as a share of those that could be judged.", "percentunit", 8,
			query{q(`sum by (instance) (rate(grayfail_request_verdicts_total{@m, verdict="slow"}[$__rate_interval])) / sum by (instance) (rate(grayfail_request_verdicts_total{@m, verdict=~"ok|slow"}[$__rate_interval]))`), "{{instance}}"}),
		stacked(lines("Time lost by coordinator and leg", "Seconds lost by slow requests since each exporter started. No leg: the host's own time.", "s", 8,
			query{q(`sum by (instance, leg) (grayfail_slow_excess_seconds_total{@ml})`), "{{instance}} {{leg}}"})),
		withRunbook(list("Legs named now", "Legs that open episodes are blamed on, with their cause and peer.", 24,
			q(`(grayfail_episode_cause{@ml, leg!=""} == 1) * on (job, instance, leg) group_left (peer, device) topk by (job, instance, leg) (1, grayfail_leg_info{@l})`), "",
			"instance", "model", "leg", "cause", "peer", "device"), "GrayfailPathNamed"),
	}
}

func peers() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		list("Who is behind which leg", "The exporter that has the address of a leg's peer. A leg that is not here has a peer without an exporter, or one whose address several hosts have.", 24,
			q(peerAddress+` * on (job, address) group_left (host) `+hostAddresses), "",
			"instance", "leg", "peer", "host"),
		withRunbook(list("Named legs, as their peers count", "The other end of a leg that is named: what that host's queues dropped on the way out, and what its kernel sent again, in five minutes. Both 0: nothing was lost on the way from there. Empty: no leg is named, or its peer has no exporter.", 24,
			q(`label_replace(source_model_leg_cause:grayfail_named_peer_drops:increase5m{@, model=~"$model", leg=~"$leg"}, "counted", "packets dropped on the way out", "", "")`+
				` or label_replace(source_model_leg_cause:grayfail_named_peer_retransmits:increase5m{@, model=~"$model", leg=~"$leg"}, "counted", "buffers sent again", "", "")`), "in 5 minutes",
			"instance", "model", "leg", "cause", "host", "device", "counted"), "GrayfailPeerDrops"),
		lines("Drops on the way out, by host", "Packets that each host's own queues dropped: the largest of its queueing disciplines by device, as root and child count the same. The host behind a named leg drops: replies are lost there.", "pps", 12,
			query{q(`max by (instance, netns, device) (rate(grayfail_qdisc_drops_total{@}[$__rate_interval]))`), "{{instance}} {{netns}} {{device}}"}),
		lines("Retransmits by host", "Buffers that each host sent again on connections that its peers opened: its replies are lost on the way. Not narrowed down by leg, as these have the name of their peer.", "pps", 12,
			query{q(`sum by (instance, leg, kind) (rate(grayfail_tcp_retransmits_total{@, leg=~"from .*"}[$__rate_interval]))`), "{{instance}} {{leg}} {{kind}}"}),
		lines("Backlog by host", "Bytes that wait in the largest queue of each device.", "bytes", 12,
			query{q(`max by (instance, netns, device) (grayfail_qdisc_backlog_bytes{@})`), "{{instance}} {{netns}} {{device}}"}),
		lines("RDMA hardware events by host", "All hardware counters of a port by the driver's names, where they move.", "cps", 12,
			query{q(`sum by (instance, device, port, event) (rate(grayfail_rdma_hw_events_total{@}[$__rate_interval])) > 0`), "{{instance}} {{device}}/{{port}} {{event}}"}),
	}
}

func exporters() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		withRunbook(list("Collectors down, and why", "What each exporter cannot do. up 1: it works with something missing.", 12,
			q(`grayfail_collector_problem_info{@} * on (job, instance, collector) group_left () grayfail_collector_up{@}`), "up",
			"instance", "collector", "reason"), "GrayfailCollectorDown"),
		list("Running versions", "Version and revision of each exporter that runs.", 12,
			q(`grayfail_build_info{@}`), "",
			"instance", "version", "revision", "goarch"),
		withRunbook(lines("Events lost by host", "Kernel events that found no room: ledgers of that time may fall short.", "cps", 12,
			query{q(`sum by (instance, collector) (rate(grayfail_events_lost_total{@}[$__rate_interval]))`), "{{instance}} {{collector}}"}), "GrayfailEventsLost"),
		withRunbook(lines("Configuration in force", "1: the last attempt to load the configuration succeeded; 0: an older one is in force.", "none", 12,
			query{q(`grayfail_config_last_reload_successful{@}`), "{{instance}}"}), "GrayfailConfigReloadFailed"),
	}
}
