#!/bin/bash
# Runs every fuzz target of the module for a while: fuzz-short.sh [COUNTx|TIME].
# Inputs are counted, not seconds: a worker that is at work when the time of
# go test -fuzztime 3s is up may be reported as a failure, "context deadline
# exceeded", without a failing input (golang/go#75804, every Go before 1.27).
# Targets are found by name, so that none can be forgotten. A failing input is
# left in the package's testdata/fuzz, where plain go test runs it from then on.
set -uo pipefail
cd "$(dirname "$0")/.."
fuzztime=${1:-20000x}

targets=0 failed=()
while IFS=: read -r file target; do
	targets=$((targets + 1))
	dir=./$(dirname "$file")
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -timeout 5m "$dir" </dev/null || failed+=("$dir $target")
done < <(find . -name '*_test.go' -not -path './.*/*' -exec grep -oHE '^func Fuzz[A-Za-z0-9_]*' {} + |
	sed -e 's#^\./##' -e 's#func ##' | sort)

if [ $targets -eq 0 ]; then
	echo "fuzz-short: found no fuzz target" >&2
	exit 1
fi
printf 'fuzz-short: %d targets, %d failed\n' "$targets" "${#failed[@]}"
[ ${#failed[@]} -eq 0 ] && exit 0
printf '  %s\n' "${failed[@]}"
exit 1
