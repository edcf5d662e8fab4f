#!/bin/bash
# Regenerates what is committed and generated, and fails if a byte changed. On
# a difference the new files stay in place: look at them, then commit them.
set -euo pipefail
cd "$(dirname "$0")/.."

sums() {
	find ebpf dashboards \( -name '*_bpfe[lb].go' -o -name '*_bpfe[lb].o' -o -name '*_x86_bpfel.*' -o -name '*_arm64_bpfel.*' -o -path 'dashboards/*.json' \) \
		-not -path '*/testdata/*' -print0 | sort -z | xargs -0 -r sha256sum
}

before=$(sums)
if [ -z "$before" ]; then
	echo "generate-check: no generated file found" >&2
	exit 1
fi
make generate
if ! diff <(echo "$before") <(sums); then
	echo "generate-check: generated files differ from the committed ones (above: committed <, regenerated >)" >&2
	exit 1
fi
echo "generate-check: $(wc -l <<<"$before") generated files are as committed"
