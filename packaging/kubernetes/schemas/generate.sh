#!/bin/bash
# Makes the schemas again, in a module that is thrown away: README.md says of
# what. Run it by hand when the versions move; it builds for a minute.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
cd "$work"
go mod init schemas
printf 'package schemas\n\nimport (\n' >schemas.go
types=(k8s.io/api/apps/v1 k8s.io/api/core/v1 github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1)
printf '\t_ "%s"\n' "${types[@]}" >>schemas.go
echo ')' >>schemas.go
go get k8s.io/api@v0.37.2 github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring@v0.95.2
go mod tidy
go get -tool sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0
for t in "${types[@]}"; do
	go tool controller-gen crd:maxDescLen=0,generateEmbeddedObjectMeta=true,allowDangerousTypes=true,ignoreUnexportedFields=true \
		"paths=$t" output:crd:dir=out
done
while read -r definition version kind; do
	go -C "$here/../manifests" run . schema "$work/out/$definition.yaml" "$version" >"$here/$kind.json"
done <<'END'
_daemonsets apps/v1 daemonset
_services v1 service
_configmaps v1 configmap
monitoring.coreos.com_servicemonitors monitoring.coreos.com/v1 servicemonitor
monitoring.coreos.com_prometheusrules monitoring.coreos.com/v1 prometheusrule
END
