#!/bin/bash
# Makes again what is generated and committed, and fails if a byte differs. New
# dashboards stay in place: look at them, then commit them. The BPF objects are
# left alone: "make generate" writes them.
set -euo pipefail
cd "$(dirname "$0")/.."

before=$(sha256sum dashboards/*.json)
go -C dashboards/generate run . -out ..
if ! diff <(echo "$before") <(sha256sum dashboards/*.json); then
	echo "generate-check: the dashboards (committed <, generated >) differ" >&2
	exit 1
fi

before=$(sha256sum packaging/kubernetes/prometheusrule.yaml)
scripts/generate-prometheusrule.sh
if ! diff <(echo "$before") <(sha256sum packaging/kubernetes/prometheusrule.yaml); then
	echo "generate-check: packaging/kubernetes/prometheusrule.yaml is not what alerts/*.rules.yml make" >&2
	exit 1
fi

# Compares source, generated Go and objects, with the clang they were made by.
code=0
said=$(go test -count=1 -run '^TestGenerated$' -v ./ebpf 2>&1) || code=$?
echo "$said"
if [ $code -ne 0 ] || ! grep -q '^--- PASS: TestGenerated ' <<<"$said"; then
	echo "generate-check: BPF objects differ from their source, or the test that tells is gone" >&2
	exit 1
fi
