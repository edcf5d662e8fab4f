#!/bin/bash
# Runs every check there is, to the end even when one fails, and closes with a
# table: part, seconds, budget, result. Exit 1 if any part failed. A part over
# its budget is marked, not failed: times depend on the machine.
# The budgets are for 2 cores with cold build and module caches.
set -uo pipefail
cd "$(dirname "$0")/.."

names=() seconds=() budgets=() results=()
trap 'echo "interrupted" >&2; exit 130' INT TERM

part() { # part NAME BUDGET_SECONDS COMMAND...
	local name=$1 budget=$2 start=$SECONDS result=ok code=0
	shift 2
	printf '\n=== %s\n' "$name"
	"$@" </dev/null || code=$?
	[ $code -eq 130 ] && exit 130
	local took=$((SECONDS - start))
	[ $took -gt "$budget" ] && result='ok, over budget'
	[ $code -ne 0 ] && result="FAILED (exit $code)"
	names+=("$name") seconds+=("$took") budgets+=("$budget") results+=("$result")
}

format() {
	local unformatted
	unformatted=$(find . -name '*.go' -not -path './.*/*' -exec gofmt -l {} +) || return
	[ -z "$unformatted" ] && return
	printf 'not gofmt-ed:\n%s\n' "$unformatted"
	return 1
}

vet() {
	go vet ./... && go vet -tags guest ./lab/vm/... ./lab/campaign/runner ./collector/... && go -C dashboards/generate vet ./... && go -C packaging/kubernetes/manifests vet ./...
}

# Packages that make network namespaces, load BPF or start servers run one
# after another, so that they measure themselves and not each other. All
# others are one group: a new package is in it by default.
live='^grayfail/(ebpf|lab|cmd|alerts|dashboards|packaging|collector/(netns|qdisc|sockdiag|legs))(/|$)'

packages() { # packages MODE: "live" or "pure"
	local all
	all=$(go list ./...) || return
	if [ "$1" = live ]; then grep -E "$live" <<<"$all"; else grep -Ev "$live" <<<"$all"; fi
}

pure_tests() {
	local list
	list=$(packages pure) || return
	# shellcheck disable=SC2086 # one argument a package
	go test -race -timeout 5m $list
}

live_tests() {
	local list
	list=$(packages live) || return
	# shellcheck disable=SC2086
	go test -race -timeout 8m -p 1 $list
}

if [ "${PACKAGES:-}" != skip ]; then
	part packages 120 scripts/install-packages.sh
fi
part format 10 format
part build 240 make build
part vet 120 vet
part lint 240 make lint
part generate-check 90 scripts/generate-check.sh
part tests 420 pure_tests
part live-tests 720 live_tests
part eval 90 make eval CHECK=1
part fuzz-short 240 scripts/fuzz-short.sh "${FUZZTIME:-20000x}"

printf '\n%-16s %8s %8s  %s\n' part seconds budget result
total=0 failed=0
for i in "${!names[@]}"; do
	printf '%-16s %8d %8d  %s\n' "${names[$i]}" "${seconds[$i]}" "${budgets[$i]}" "${results[$i]}"
	total=$((total + seconds[i]))
	case ${results[$i]} in FAILED*) failed=$((failed + 1)) ;; esac
done
printf '%-16s %8d %8d\n' total "$total" 1500
[ $failed -eq 0 ]
