#!/bin/bash
# Plays scenarios on the real llama.cpp in the lab (lab/cmd/record) and writes
# what the exporter said of each into docs/evaluation-live.md. Needs root and
# some minutes. Its figures depend on the machine: nothing compares them.
# usage: eval-live.sh EXPORTER [SCENARIO...]
set -euo pipefail
cd "$(dirname "$0")/.."

exporter=$1
shift
[ $# -gt 0 ] || set -- nothing loss5_replies_of_b loss5_requests_to_a delay50ms_replies_of_a slow_host_b slow_coordinator slow_hosts_both loss5_replies_of_b_2_parallel
baseline=${BASELINE:-20} fault=${FAULT:-20} page=${PAGE:-docs/evaluation-live.md}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# One line a scenario: NAME truth T  RATES, SLOW; EVIDENCE...; said live: SAID[; SCORE]
lines=$(go run ./lab/cmd/record --exporter "$exporter" --out "$out" --instance evlive --baseline "$baseline" --fault "$fault" "$@")
echo "$lines"
{
	cat <<-TEXT
		# Live runs

		Made by \`make eval-live\`; do not edit. The real llama.cpp RPC with two workers in network namespaces, the exporter beside it: $baseline requests without a fault, then $fault under it, all through the proxy. The injector proves that it acted. Below half: of the measured median without fault. Said live: what \`/api/v1/requests\` had of the slow requests, from the coordinator's view alone. The machine had two cores, shared with other work.

		| scenario | true | tok/s without -> under it, slow | the injector acted | said live | score |
		|---|---|---|---|---|---|
	TEXT
	sed -E 's/^([^ ]+) +truth (both legs|[^ ]+) +([^;]*)(.*)$/\1|\2|\3|\4/; s/; said live: ([^;]*);? ?(.*)$/|\1|\2/; s/\|; /|/' <<<"$lines" |
		awk -F'|' '{ printf "| %s | %s | %s | %s | %s | %s |\n", $1, $2, $3, ($4 == "" ? "-" : $4), $5, ($6 == "" ? "-" : $6) }'
} >"$page"
