#!/bin/bash
# engine.sh DIR: unpack llama.cpp (llama-server, ggml-rpc-server with the TCP
# transport) from Debian's own packages into DIR, to be run by chroot.
#
# Debian 12 has no llama.cpp, so a later suite is unpacked into a folder of its
# own; nothing is installed on the host. The mirror is the one apt uses here.
# A finished DIR carries the stamp DIR/.complete with the engine's version; a
# DIR without it is thrown away and made again.
set -euo pipefail
dir=$1 suite=${SUITE:-forky}
fail() { echo "$*" >&2; exit 1; }

exec 9>"$dir.lock"; flock 9
[ ! -e "$dir/.complete" ] || exit 0
command -v mmdebstrap >/dev/null || fail "mmdebstrap is missing (Debian package mmdebstrap)"

# A mirror is known to apt only after its lists are there.
mirror_of_apt() { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m1 '/debian/*$' || true; }
mirror=$(mirror_of_apt)
if [ -z "$mirror" ]; then
  apt-get update -qq >&2 || true
  mirror=$(mirror_of_apt)
fi
[ -n "$mirror" ] || fail "apt knows no Debian mirror"

rm -rf --one-file-system "$dir" "$dir.new"
mmdebstrap --quiet --variant=extract --aptopt='Acquire::Check-Valid-Until "false"' \
  --include=llama.cpp-tools,llama.cpp-tools-extra,libggml0-backend-rpc \
  "$suite" "$dir.new" \
  "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >&2
# Extracted only: what base-files' scripts would have made is missing.
for d in lib lib64 bin sbin; do [ -e "$dir.new/$d" ] || ln -s "usr/$d" "$dir.new/$d"; done
mkdir -p "$dir.new"/{proc,dev,sys,tmp}
version=$(chroot "$dir.new" /usr/bin/llama-server --version 2>&1 | sed -n 's/^version: //p' | head -n1)
[ -n "$version" ] || fail "the unpacked llama-server does not run"
echo "$version" >"$dir.new/.complete"
mv "$dir.new" "$dir"
