#!/bin/bash
# Writes packaging/kubernetes/prometheusrule.yaml from the rule files in alerts/.
set -euo pipefail
cd "$(dirname "$0")/.."
out=packaging/kubernetes/prometheusrule.yaml
new=$(mktemp)
trap 'rm -f "$new"' EXIT
go -C packaging/kubernetes/manifests run . rule "$PWD"/alerts/*.rules.yml >"$new"
cat "$new" >"$out"
