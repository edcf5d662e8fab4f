#!/bin/bash
# dist.sh OUT ARCH...: the static binary, and the Debian package around it, for
# each architecture (amd64, arm64), and SHA256SUMS. The same commit gives the
# same bytes, in whatever folder, at whatever time: LDFLAGS, VERSION and
# SOURCE_DATE_EPOCH come from the Makefile, NFPM is the command that packs.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "$1" && cd "$1" && pwd)
shift
umask 022
export LC_ALL=C TZ=UTC
: "${SOURCE_DATE_EPOCH:?}" "${VERSION:?}" "${LDFLAGS:?}" "${NFPM:?}"

# v1.2.3-5-gabc, five commits after 1.2.3, sorts behind 1.2.3; 1.3.0-rc1 before.
deb_version=$(sed -E 's/^v//; s/-([0-9]+)-g([0-9a-f]+)$/+\1.g\2/; s/-/~/' <<<"$VERSION")

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT

licenses() { # of every module that is linked in
	local path dir file
	go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/grayfail_exporter | sort -u |
		while read -r path version dir; do
			printf '==== %s %s\n\n' "$path" "$version"
			for file in "$dir"/LICEN[SC]E* "$dir"/COPYING* "$dir"/NOTICE*; do
				if [ -f "$file" ]; then cat "$file"; echo; fi
			done
		done
}

stage() { # stage DIR BINARY: the tree of the package, without conffiles
	local s=$1 share=$1/usr/share/grayfail doc=$1/usr/share/doc/grayfail-exporter
	install -D -m 755 "$2" "$s/usr/bin/grayfail_exporter"
	install -D -m 644 -t "$s/usr/lib/systemd/system" packaging/systemd/grayfail_exporter.service
	install -D -m 644 -t "$share/rules" alerts/*.rules.yml
	install -D -m 644 -t "$share/runbooks" alerts/runbooks/*.md
	install -D -m 644 -t "$share/dashboards" dashboards/*.json
	install -D -m 644 -t "$doc" packaging/deb/copyright README.md docs/*.md
	install -D -m 644 -t "$doc/examples" packaging/systemd/containers.conf alerts/alertmanager.example.yml
	gzip -9n <CHANGELOG.md >"$doc/changelog.gz"
	licenses | gzip -9n >"$doc/third-party-licenses.txt.gz"
	install -D -m 644 packaging/grayfail.yml "$s.etc/grayfail.yml"
	install -D -m 644 packaging/systemd/default "$s.etc/default"
	chmod 644 "$doc"/*.gz
	find "$s" "$s.etc" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

names=()
for arch in "$@"; do
	binary=grayfail_exporter_linux_$arch deb=grayfail-exporter_${deb_version}_$arch.deb
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false -ldflags "$LDFLAGS" -o "$out/$binary" ./cmd/grayfail_exporter
	GOOS=linux GOARCH=$arch stage "$work/$arch" "$out/$binary"
	(cd packaging && DEB_ARCH=$arch DEB_VERSION=$deb_version STAGE=$work/$arch $NFPM package -f deb/nfpm.yaml -p deb -t "$out/$deb" >"$work/said") || { cat "$work/said" >&2; exit 1; }
	names+=("$binary" "$deb")
done
cd "$out"
sha256sum "${names[@]}" | tee SHA256SUMS
