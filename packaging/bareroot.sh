#!/bin/bash
# bareroot.sh FILE: a bare Debian 12 (what is essential, and nothing more) as a
# tar file, unless FILE is there. The mirror is the one apt uses here.
set -euo pipefail
file=$1 suite=bookworm
fail() { echo "bareroot: $*" >&2; exit 1; }

exec 9>"$file.lock"; flock 9
[ ! -e "$file" ] || exit 0
command -v mmdebstrap >/dev/null || fail "mmdebstrap is missing (Debian package mmdebstrap)"

# A mirror is known to apt only after its lists are there.
mirror_of_apt() { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 '/debian/*$' || true; }
mirror=$(mirror_of_apt)
if [ -z "$mirror" ]; then
	apt-get update -qq >&2 || true
	mirror=$(mirror_of_apt)
fi
[ -n "$mirror" ] || fail "apt knows no Debian mirror"

trap 'rm -f "$file.new"' EXIT
mmdebstrap --quiet --variant=essential --format=tar \
	--dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
	"$suite" "$file.new" "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >&2
mv "$file.new" "$file"
