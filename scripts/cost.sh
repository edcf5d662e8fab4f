#!/bin/bash
# Measures what the exporter costs (lab/cmd/cost) and writes docs/cost.md with
# its plots and docs/bench.txt. Needs root. Both node_exporters it compares with
# are put into bin/cost and nowhere else: no package is installed for it.
# ONLY=SECTION,... measures those sections only (bench is one), COUNT and
# BENCHTIME are the benchmarks', ROUNDS and PAIRS are lab/cmd/cost's.
# usage: cost.sh EXPORTER
set -euo pipefail
cd "$(dirname "$0")/.."

exporter=$1
newest=v1.12.1 # of node_exporter, by the Go module proxy
only=${ONLY:-qdisc,scrape,load,engine,bench}
tools=$PWD/bin/cost
mkdir -p "$tools"

debian=$tools/debian/usr/bin/prometheus-node-exporter
if [ ! -x "$debian" ]; then
	deb=$(mktemp -d)
	trap 'rm -rf "$deb"' EXIT
	(cd "$deb" && apt-get -q download prometheus-node-exporter && dpkg -x ./*.deb "$tools/debian")
fi
version=$("$debian" --version 2>&1 | sed -n 's/^node_exporter, version \([^ ]*\) .*/\1/p')
[ -x "$tools/node_exporter" ] || GOBIN=$tools go install "github.com/prometheus/node_exporter@$newest"

flags=()
for section in ${only//,/ }; do
	case $section in
	bench)
		# One package at a time: they would compete for the cores.
		go test -run '^$' -bench . -benchmem -count "${COUNT:-6}" -benchtime "${BENCHTIME:-1s}" -p 1 ./... >bin/bench.txt
		"${BENCHSTAT:-benchstat}" bin/bench.txt >docs/bench.txt
		flags+=(--bench=bin/bench.txt)
		;;
	*) flags+=("--only=$section") ;;
	esac
done
[[ ${flags[*]} == *--only* ]] || flags+=(--only=nothing)
go run ./lab/cmd/cost --exporter="$exporter" --rounds="${ROUNDS:-20}" --pairs="${PAIRS:-60}" \
	"--node-exporter=node_exporter $version (Debian)=$debian" "--node-exporter=node_exporter ${newest#v}=$tools/node_exporter" "${flags[@]}"
