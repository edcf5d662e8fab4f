package export

import (
	"slices"
	"time"
)

const nativeReset = time.Hour

const (
	requestsTotal metric = iota
	requestVerdicts
	requestRate
	requestNormalizedRate
	requestDuration
	requestFirstToken
	requestHTTPStage
	requestsInFlight
	slowExcess

	baselineRate
	baselineAnchor
	baselineSamples
	baselineLogSigma
	baselineState
	baselineAdopted
	baselineEroded

	episodeActive
	episodesTotal
	episodeCause

	qdiscBytes
	qdiscPackets
	qdiscDrops
	qdiscRequeues
	qdiscOverlimits
	qdiscBacklog
	qdiscQueue

	legInfo
	legExpected
	legTransport
	legFallback
	legFallbackSeconds
	hostInfo

	tcpRetransmits
	tcpConnectionDuration
	tcpExchange
	tcpExchangeStall
	tcpRTT
	tcpMinRTT
	tcpPayload
	tcpOutOfOrder
	tcpConnections

	rdmaPortInfo
	rdmaPortActive
	rdmaPortRate
	rdmaQueuePairs
	rdmaHWEvents

	rankCorrelation
	rankCorrelationP
	rankCorrelationN
	rankCorrelationFamilyP

	requestIntake
	detectorIgnored
	detectorFreed
	detectorEntries
	detectorClockSteps

	collectorUp
	collectorProblem
	collectorDuration
	collectorErrors
	eventsLost
	seriesOverflow
	reloadSuccessful
	reloadTime
	buildInfo

	numMetrics
)

// describe is the one table of every metric. Names and labels are a contract
// with dashboards and alerts.
//
// A function, not a variable: nobody can change it.
func describe(strata bool) [numMetrics]Description {
	var (
		requestLabels  = []string{"source", "model"}
		phaseLabels    = []string{"source", "model", "phase"}
		baselineLabels = []string{"source", "model", "phase"}
		qdiscLabels    = []string{"netns", "device", "kind", "handle", "parent"}
		legLabels      = []string{"leg"}
		portLabels     = []string{"device", "port"}
		rankLabels     = []string{"model", "leg", "evidence"}
		stratum        = " (the stratum with most requests)"
		overStrata     = ", over all strata"
	)
	if strata {
		baselineLabels, stratum, overStrata = append(baselineLabels, "concurrency"), "", ""
	}
	table := [numMetrics]Description{
		requestsTotal: {"requests_total", "Completed inference requests by outcome.",
			Counter, append(slices.Clip(requestLabels), "outcome"), nil},
		requestVerdicts: {"request_verdicts_total", "Verdicts on one phase of one request: slow is below the threshold share of the baseline, unknown has no ready baseline or too few tokens.",
			Counter, append(slices.Clip(phaseLabels), "verdict"), nil},
		requestRate: {"request_tokens_per_second", "Token rate of one phase of a request.",
			Histogram, phaseLabels, []float64{0.5, 1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000, 5000, 10000, 50000}},
		requestNormalizedRate: {"request_normalized_rate", "Token rate of one phase of a request as a share of its baseline; below 0.5 is slow.",
			// 0.5 is a bound because it is the rule: what is at or below
			// le="0.5" is slow (but for a rate of exactly half).
			Histogram, phaseLabels, []float64{0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2}},
		requestDuration: {"request_duration_seconds", "Time from the start to the end of a request; canceled ones are left out.",
			Histogram, requestLabels, between(0.1, 1000)},
		requestFirstToken: {"request_time_to_first_token_seconds", "Time from the start of a request to its first token.",
			Histogram, requestLabels, between(0.01, 100)},
		requestHTTPStage: {"request_http_stage_seconds", "Time of one stage of a proxied inference call on the upstream's side, without waiting for the client; stages that did not happen or did not come to their end are left out.",
			Histogram, []string{"upstream", "stage"}, between(1e-4, 1000)},
		requestsInFlight: {"requests_in_flight", "Requests that a source is serving now.",
			Gauge, requestLabels, nil},
		slowExcess: {"slow_excess_seconds_total", "Time lost by slow phases against their baseline, by the leg that it was lost on; what no leg explains has leg \"\" and cause local.",
			Counter, []string{"source", "model", "leg", "cause"}, nil},

		baselineRate: {"baseline_tokens_per_second", "Rate that a phase is judged against" + stratum + ".",
			Gauge, baselineLabels, nil},
		baselineAnchor: {"baseline_anchor_tokens_per_second", "Rate of the last accepted regime: the baseline does not follow a slow decay below 0.9 of it" + stratum + ".",
			Gauge, baselineLabels, nil},
		baselineSamples: {"baseline_samples", "Requests in the window of a baseline" + stratum + ".",
			Gauge, baselineLabels, nil},
		baselineLogSigma: {"baseline_log_sigma", "Spread of the natural logarithm of the rates in the window of a baseline" + stratum + ".",
			Gauge, baselineLabels, nil},
		baselineState: {"baseline_state", "State of a baseline: 1 for the one it is in" + stratum + ".",
			Gauge, append(slices.Clip(baselineLabels), "state"), nil},
		baselineAdopted: {"baseline_adopted_total", "New regimes adopted as a baseline" + overStrata + ".",
			Counter, baselineLabels, nil},
		baselineEroded: {"baseline_eroded", "Whether the median of a baseline has decayed below 0.8 of its anchor, too slowly for a request to be slow" + stratum + ".",
			Gauge, baselineLabels, nil},

		episodeActive: {"episode_active", "Whether a run of slow requests is going on.",
			Gauge, phaseLabels, nil},
		episodesTotal: {"episodes_total", "Runs of slow requests, counted when they open under the cause known then.",
			Counter, append(slices.Clip(requestLabels), "cause"), nil},
		episodeCause: {"episode_cause", "Cause of the open runs of slow requests: 1 while one of this cause and leg is open, 0 for recent ones.",
			Gauge, append(slices.Clip(requestLabels), "cause", "leg"), nil},

		qdiscBytes: {"qdisc_bytes_total", "Bytes that a queueing discipline has sent. Root and child count the same bytes: never sum over handles.",
			Counter, qdiscLabels, nil},
		qdiscPackets: {"qdisc_packets_total", "Packets that a queueing discipline has sent. Root and child count the same packets: never sum over handles.",
			Counter, qdiscLabels, nil},
		qdiscDrops: {"qdisc_drops_total", "Packets that a queueing discipline has dropped.",
			Counter, qdiscLabels, nil},
		qdiscRequeues: {"qdisc_requeues_total", "Packets that a queueing discipline has taken back from the driver.",
			Counter, qdiscLabels, nil},
		qdiscOverlimits: {"qdisc_overlimits_total", "Times that a queueing discipline was over its limit.",
			Counter, qdiscLabels, nil},
		qdiscBacklog: {"qdisc_backlog_bytes", "Bytes waiting in a queueing discipline.",
			Gauge, qdiscLabels, nil},
		qdiscQueue: {"qdisc_queue_packets", "Packets waiting in a queueing discipline.",
			Gauge, qdiscLabels, nil},

		legInfo: {"leg_info", "The way from this host to one peer; always 1.",
			Gauge, []string{"leg", "role", "netns", "local", "peer", "device", "rdma_device", "rdma_port"}, nil},
		legExpected: {"leg_expected", "What the configuration expects a leg to run over, rdma or tcp; always 1, absent where it expects nothing.",
			Gauge, append(slices.Clip(legLabels), "expected"), nil},
		legTransport: {"leg_transport", "How a leg carries payload: 1 for the transport it is on.",
			Gauge, append(slices.Clip(legLabels), "transport"), nil},
		legFallback: {"leg_fallback", "Whether a leg that could use RDMA carries its payload over TCP, with the reason; reason \"\" and 0 while it does not. Absent while its transport is unknown.",
			Gauge, append(slices.Clip(legLabels), "reason"), nil},
		legFallbackSeconds: {"leg_fallback_seconds_total", "Time that a leg has spent in fallback.",
			Counter, legLabels, nil},
		hostInfo: {"host_info", "Addresses of this host, to join with the peer of another host's leg; always 1.",
			Gauge, []string{"address"}, nil},

		tcpRetransmits: {"tcp_retransmits_total", "Retransmitted buffers (skb, not segments) by what made the kernel send again.",
			Counter, append(slices.Clip(legLabels), "kind"), nil},
		tcpConnectionDuration: {"tcp_connection_duration_seconds", "Life span of established connections, observed when they end.",
			Histogram, legLabels, []float64{1e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.5, 1, 10, 60, 600, 3600, 86400}},
		tcpExchange: {"tcp_exchange_seconds", "Time from the last send of a request to the last byte of its reply.",
			Histogram, legLabels, between(1e-4, 10)},
		tcpExchangeStall: {"tcp_exchange_stall_seconds", "Largest gap between segments inside the reply of one exchange.",
			Histogram, legLabels, between(1e-4, 10)},
		tcpRTT: {"tcp_rtt_seconds", "Smoothed round-trip time of the busiest socket of a leg.",
			Gauge, legLabels, nil},
		tcpMinRTT: {"tcp_min_rtt_seconds", "Windowed minimum round-trip time of the busiest socket of a leg.",
			Gauge, legLabels, nil},
		tcpPayload: {"tcp_payload_bytes_total", "Payload of a leg without retransmits: sent is what the peer has acknowledged.",
			Counter, append(slices.Clip(legLabels), "direction"), nil},
		tcpOutOfOrder: {"tcp_out_of_order_packets_total", "Segments that arrived ahead of a hole.",
			Counter, legLabels, nil},
		tcpConnections: {"tcp_connections", "Established connections of a leg.",
			Gauge, legLabels, nil},

		rdmaPortInfo: {"rdma_port_info", "A port of an RDMA device; always 1.",
			Gauge, append(slices.Clip(portLabels), "netdev", "link_layer", "protocol"), nil},
		rdmaPortActive: {"rdma_port_active", "Whether a port of an RDMA device is ACTIVE.",
			Gauge, portLabels, nil},
		rdmaPortRate: {"rdma_port_rate_bytes_per_second", "Rate of the link of a port.",
			Gauge, portLabels, nil},
		rdmaQueuePairs: {"rdma_queue_pairs", "Queue pairs by port, type and state; port \"\" before INIT, where a queue pair belongs to no port. Absent for devices whose queue pairs could not all be listed.",
			Gauge, append(slices.Clip(portLabels), "type", "state"), nil},
		rdmaHWEvents: {"rdma_hw_events_total", "Hardware counters of a port by the driver's names.",
			Counter, append(slices.Clip(portLabels), "event"), nil},

		rankCorrelation: {"path_rank_correlation", "Spearman rank correlation of a leg's evidence with the normalized rate: associated with, not caused by.",
			Gauge, rankLabels, nil},
		rankCorrelationP: {"path_rank_correlation_p_value", "Permutation p-value of the rank correlation.",
			Gauge, rankLabels, nil},
		rankCorrelationN: {"path_rank_correlation_requests", "Requests that the rank correlation is over.",
			Gauge, rankLabels, nil},

		rankCorrelationFamilyP: {"path_rank_correlation_family_p_value", "Permutation p-value of the rank correlation among those of all legs and kinds of evidence of the model (max-T).",
			Gauge, rankLabels, nil},

		requestIntake: {"request_intake_total", "Request records that were pushed or came as traces, by what became of them; results that begin with body count whole bodies.",
			Counter, []string{"source", "result"}, nil},
		detectorIgnored: {"detector_ignored_total", "Events that the detector could not use or keep, by reason.",
			Counter, []string{"reason"}, nil},
		detectorFreed: {"detector_freed_total", "Entries of a table of the detector that made room for newer ones.",
			Counter, []string{"table"}, nil},
		detectorEntries: {"detector_entries", "Entries in use in a table of the detector.",
			Gauge, []string{"table"}, nil},
		detectorClockSteps: {"detector_clock_steps_total", "Times that the clock was set by a minute or more, or the host slept: baselines do not age by it.",
			Counter, nil, nil},

		collectorUp: {"collector_up", "Whether a collector works, perhaps with something missing (see collector_problem_info); absent before its first try.",
			Gauge, []string{"collector"}, nil},
		collectorProblem: {"collector_problem_info", "What a collector cannot do and why; always 1.",
			Gauge, []string{"collector", "reason"}, nil},
		collectorDuration: {"collector_duration_seconds", "Duration of the last try of a collector.",
			Gauge, []string{"collector"}, nil},
		collectorErrors: {"collector_errors_total", "Failed tries of a collector.",
			Counter, []string{"collector"}, nil},
		eventsLost: {"events_lost_total", "Events that the kernel could not hand over because a buffer was full.",
			Counter, []string{"collector"}, nil},
		seriesOverflow: {"series_overflow_total", "Observations and series that went to \"other\" or were left out because a bound was reached or a series came twice.",
			Counter, nil, nil},
		reloadSuccessful: {"config_last_reload_successful", "Whether the last attempt to load the configuration succeeded.",
			Gauge, nil, nil},
		reloadTime: {"config_last_reload_success_timestamp_seconds", "When the configuration was last loaded successfully.",
			Gauge, nil, nil},
		buildInfo: {"build_info", "The version that is running; always 1.",
			Gauge, []string{"version", "revision", "branch", "goversion", "goos", "goarch", "tags"}, nil},
	}
	for i := range table {
		table[i].Name = namespace + table[i].Name
	}
	return table
}

// between gives the classic bounds of a span in seconds: 1, 2, 5 times the
// powers of ten from low to high. Retransmission shows from 0.2 s (the minimum
// RTO) on, so that is a bound.
func between(low, high float64) []float64 {
	bounds := []float64{
		1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
		1, 2, 5, 10, 20, 50, 100, 200, 500, 1000,
	}
	return slices.DeleteFunc(bounds, func(b float64) bool { return b < low || b > high })
}
