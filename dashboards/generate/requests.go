package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// requestsBoard answers for one model: is it slower than usual, in which phase,
// where in the HTTP call, and can that be judged at all.
func requestsBoard() *dashboard.DashboardBuilder {
	return board("grayfail-requests", "Gray failures: model and requests",
		"Token rates of each model against its own baseline, times, HTTP stages and verdicts.",
		part{"Over the time shown", requestNumbers()},
		part{"Rate against baseline", rates()},
		part{"Time", times()},
		part{"Verdicts and baselines", verdicts()},
	)
}

func requestNumbers() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		figure("Requests", "Requests that ended, of every outcome.", "none",
			q(`sum(increase(grayfail_requests_total{@m}[$__range]))`)),
		number("Failed requests", "Share of requests that ended with an error or ran into a timeout.", "percentunit", 0.01,
			q(`sum(increase(grayfail_requests_total{@m, outcome=~"error|timeout"}[$__range])) / sum(increase(grayfail_requests_total{@m}[$__range]))`)),
		number("Slow share", "Share of slow verdicts in those that could be judged.", "percentunit", 0.05,
			q(`sum(increase(grayfail_request_verdicts_total{@m, verdict="slow"}[$__range])) / sum(increase(grayfail_request_verdicts_total{@m, verdict=~"ok|slow"}[$__range]))`)),
		number("Not judged", "Share of verdicts that are unknown: the baseline is not ready, or the phase had too few tokens.", "percentunit", 0.5,
			q(`sum(increase(grayfail_request_verdicts_total{@m, verdict="unknown"}[$__range])) / sum(increase(grayfail_request_verdicts_total{@m}[$__range]))`)),
		figure("First token, p90", "Nine of ten requests had their first token by then.", "s",
			q(`histogram_quantile(0.9, sum by (le) (increase(grayfail_request_time_to_first_token_seconds_bucket{@m}[$__range])))`)),
		figure("In flight", "Requests that are being served now.", "none",
			q(`sum(grayfail_requests_in_flight{@m})`)),
	}
}

func rates() []cog.Builder[dashboard.Panel] {
	against := func(title, phase, description string) cog.Builder[dashboard.Panel] {
		return withRunbook(lines(title, description, "suffix: tok/s", 12,
			query{mean("grayfail_request_tokens_per_second", `@m, phase="`+phase+`"`, "source, model"), "{{model}} mean"},
			query{q(`grayfail_baseline_tokens_per_second{@m, phase="` + phase + `"}`), "{{model}} baseline"},
			query{q(`grayfail_baseline_anchor_tokens_per_second{@m, phase="` + phase + `"}`), "{{model}} anchor"}),
			"GrayfailSlowRequests", "GrayfailBaselineEroded")
	}
	return []cog.Builder[dashboard.Panel]{
		against("Decode rate", "decode", "Mean decode rate, what it is judged against (the busiest stratum), and the regime that was accepted last. A mean below the baseline may be a higher concurrency: the normalized rate takes that out."),
		against("Prefill rate", "prefill", "Mean prefill rate, what it is judged against (the busiest stratum), and the regime that was accepted last. Prompts of less than 64 fresh tokens have none."),
		below(lines("Rate as a share of its baseline", "Each request against the baseline of its own concurrency, context and length: median and lowest tenth. Below 0.5 is slow.", "percentunit", 12,
			query{quantile("0.5", "grayfail_request_normalized_rate", "@m", "model, phase"), "{{model}} {{phase}} median"},
			query{quantile("0.1", "grayfail_request_normalized_rate", "@m", "model, phase"), "{{model}} {{phase}} p10"}), 0.5),
		lines("Output tokens per second", "Decode rate of the requests that ended: median, lowest and highest tenth.", "suffix: tok/s", 12,
			query{quantile("0.1", "grayfail_request_tokens_per_second", `@m, phase="decode"`, "model"), "{{model}} p10"},
			query{quantile("0.5", "grayfail_request_tokens_per_second", `@m, phase="decode"`, "model"), "{{model}} median"},
			query{quantile("0.9", "grayfail_request_tokens_per_second", `@m, phase="decode"`, "model"), "{{model}} p90"}),
	}
}

func times() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		lines("Time to first token", "From the start of a request to its first token: queueing, prompt and the first decode.", "s", 8,
			query{quantile("0.5", "grayfail_request_time_to_first_token_seconds", "@m", "model"), "{{model}} median"},
			query{quantile("0.9", "grayfail_request_time_to_first_token_seconds", "@m", "model"), "{{model}} p90"}),
		lines("Duration", "From the start to the end of a request; canceled ones are left out.", "s", 8,
			query{quantile("0.5", "grayfail_request_duration_seconds", "@m", "model"), "{{model}} median"},
			query{quantile("0.9", "grayfail_request_duration_seconds", "@m", "model"), "{{model}} p90"}),
		lines("In flight by source", "Requests that each source is serving: with it the rate of a single one sinks by design.", "none", 8,
			query{q(`sum by (source, model) (grayfail_requests_in_flight{@m})`), "{{source}} {{model}}"}),
		stacked(lines("HTTP stages, mean", "Where an average proxied call spends its time on the upstream's side. first_byte: the engine is queueing or reading the prompt; read: it answers.", "s", 12,
			query{mean("grayfail_request_http_stage_seconds", "@", "upstream, stage"), "{{upstream}} {{stage}}"})),
		lines("HTTP stages, p99", "The slowest hundredth of each stage. connect or dns: the network or the name service, not the engine.", "s", 12,
			query{quantile("0.99", "grayfail_request_http_stage_seconds", "@", "upstream, stage"), "{{upstream}} {{stage}}"}),
	}
}

func verdicts() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		stacked(lines("Verdict counts", "Verdicts in each interval. Unknown says that nothing could be judged, not that all is well.", "none", 8,
			query{q(`sum by (model, phase, verdict) (increase(grayfail_request_verdicts_total{@m}[$__rate_interval]))`), "{{model}} {{phase}} {{verdict}}"})),
		withRunbook(lines("Slow share by model", "Slow verdicts as a share of those that could be judged.", "percentunit", 8,
			query{q(`sum by (source, model, phase) (rate(grayfail_request_verdicts_total{@m, verdict="slow"}[$__rate_interval])) / sum by (source, model, phase) (rate(grayfail_request_verdicts_total{@m, verdict=~"ok|slow"}[$__rate_interval]))`), "{{source}} {{model}} {{phase}}"}),
			"GrayfailSlowRequests", "GrayfailSlowRequestsCreeping"),
		stacked(lines("Outcomes", "Requests that ended each second, by outcome.", "reqps", 8,
			query{q(`sum by (model, outcome) (rate(grayfail_requests_total{@m}[$__rate_interval]))`), "{{model}} {{outcome}}"})),
		withRunbook(list("Baselines", "State of each model's busiest stratum and how many requests its window holds. warming: ten are needed; frozen: an episode is open and nothing is learned.", 12,
			q(`grayfail_baseline_samples{@m} * on (job, instance, source, model, phase) group_left (state) (grayfail_baseline_state{@m} == 1)`), "requests",
			"instance", "source", "model", "phase", "state"), "GrayfailBaselineCold"),
		lines("Spread of the baseline", "Standard deviation of the logarithm of the rates in the window: 0.1 is about 10 %. Where it is wide, half of the median is no rare event.", "none", 12,
			query{q(`grayfail_baseline_log_sigma{@m}`), "{{source}} {{model}} {{phase}}"}),
	}
}
