#!/bin/bash
# Installs the Debian packages of packages.txt that are missing. Does nothing,
# and asks no mirror, when all are there. Services that packages bring
# (prometheus, prometheus-alertmanager) are neither started now nor at boot.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf 'install-packages: %s\n' "$*" >&2; }

# The policy that invoke-rc.d and deb-systemd-invoke ask before they start a
# service; exit 101 forbids it.
policy=/usr/sbin/policy-rc.d
saved=$policy.before-grayfail

restore_policy() {
	if [ -e "$saved" ]; then
		mv -f "$saved" "$policy"
	elif grep -qs grayfail-install-packages "$policy"; then
		rm -f "$policy"
	fi
}

forbid_service_starts() {
	restore_policy # what a killed run left
	if [ -x "$policy" ]; then
		local answer=0
		"$policy" prometheus start >/dev/null 2>&1 || answer=$?
		[ "$answer" -eq 101 ] && return
		mv -f "$policy" "$saved"
	fi
	printf '#!/bin/sh\n# grayfail-install-packages: removed when it ends\nexit 101\n' >"$policy"
	chmod 755 "$policy"
}

# Packages enable their units for the next boot; take that back for those that
# this run brought. Without systemd nothing would start them.
disable_units() {
	local unit
	command -v systemctl >/dev/null || return 0
	for unit in $(dpkg -L "$@" | sed -n 's#.*/lib/systemd/system/\([^/@]*\.\(service\|timer\)\)$#\1#p'); do
		systemctl --quiet disable "$unit" >/dev/null 2>&1 || say "could not disable $unit: it may start at boot"
	done
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	say "needs Debian's dpkg and apt-get; on another system install the counterparts of scripts/packages.txt by hand"
	exit 1
fi

missing=()
while read -r package _; do
	case $package in '' | '#'*) continue ;; esac
	status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$status" = installed ] || missing+=("$package")
done <packages.txt

[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
	say "missing: ${missing[*]}"
	say "run as root: apt-get install --no-install-recommends ${missing[*]}"
	exit 1
fi

say "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt=(apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
trap restore_policy EXIT
trap 'exit 130' INT TERM
"${apt[@]}" update </dev/null
forbid_service_starts
"${apt[@]}" install --no-install-recommends "${missing[@]}" </dev/null
disable_units "${missing[@]}"
