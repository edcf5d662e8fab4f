#!/bin/bash
# fetch.sh DIR: unpack Debian's current kernel for this release into DIR/kernel
# and the headers for module builds into DIR/headers; nothing is installed.
#
# The kernel is the one that package linux-image-amd64 depends on today, never
# a fixed ABI number: Debian's mirrors keep only the current one. A finished
# DIR carries the stamp DIR/version with the kernel's release; a DIR without it
# is made again.
set -euo pipefail
dir=$1
fail() { echo "$*" >&2; exit 1; }

[ ! -e "$dir/version" ] || exit 0
[ "$(dpkg --print-architecture)" = amd64 ] || fail "the test kernel is amd64 only"
command -v depmod >/dev/null || fail "depmod is missing (Debian package kmod)"

depends() { apt-cache depends "$1" 2>/dev/null | sed -n "s/^ *Depends: \($2[^ ]*\)\$/\1/p" | head -n1; }

packages() { # the four packages, or nothing when apt's lists do not name them
  image=$(depends linux-image-amd64 linux-image-); version=${image#linux-image-}
  [ -n "$version" ] || return 1
  common=$(depends "linux-headers-$version" 'linux-headers-.*-common')
  kbuild=$(depends "linux-headers-$version" linux-kbuild-)
  [ -n "$common" ] && [ -n "$kbuild" ]
}
download() { (cd "$dir/debs" && apt-get -o APT::Sandbox::User=root download "$image" "linux-headers-$version" "$common" "$kbuild" >&2); }

rm -rf --one-file-system "$dir"/{debs,kernel,headers}
mkdir -p "$dir"/{debs,kernel,headers}
# Lists that are missing or older than the mirror are read anew, once.
packages && download || { apt-get update -qq >&2; packages || fail "apt knows no linux-image-amd64"; download; }

dpkg -x "$dir"/debs/"$image"_*.deb "$dir/kernel"
for p in "linux-headers-$version" "$common" "$kbuild"; do dpkg -x "$dir"/debs/"$p"_*.deb "$dir/headers"; done
# The headers name their other half by its place in an installed system.
sed -i "s#\(include \)\(/usr/src/\)#\1$dir/headers\2#" "$dir/headers/usr/src/linux-headers-$version/Makefile"
depmod -b "$dir/kernel" "$version"
rm -rf "$dir/debs"
echo "$version" >"$dir/version"
