#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: uninstall.sh [OPTION...]
#
# Removes what install.sh installed, by its list of files, and nothing else; a library
# that it stood before is found by programs again. Running programs keep what they
# have loaded. The group stays, because files may belong to it. Needs root.
#
#   --root DIR     in the system below DIR
#   --prefix DIR   (default: /usr/local)
#   --help, --version
#
# exit status: 0 removed, 1 nothing is installed there, 125 wrong command line
set -eu

prefix=/usr/local root=''

note() { printf 'uninstall.sh: %s\n' "$*" >&2; }
need() {
	[ -n "${2:-}" ] || { note "$1 needs a value (--help tells more)" && exit 125; }
}

while [ $# -gt 0 ]; do
	case $1 in
	--root) need "$@" && root=$2 && shift ;;
	--prefix) need "$@" && prefix=$2 && shift ;;
	-h | --help) sed -n '3,${/^#/!q;s/^# \{0,1\}//p}' "$0" && exit 0 ;;
	--version) printf '%s (vGPU) %s\n' "${0##*/}" '@VERSION@' && exit 0 ;;
	*) note "unknown argument: $1 (--help tells more)" && exit 125 ;;
	esac
	shift
done
root=${root%/}
lib=$prefix/lib/vgpu

[ -e "$root$lib/manifest" ] || { note "nothing is installed in $root$lib" && exit 1; }
[ "$(id -u)" -eq 0 ] || { note "needs root" && exit 1; }
# A driver that is in use stays until the next start.
if [ -z "$root" ] && command -v dkms >/dev/null; then
	dkms remove vgpu/@VERSION@ --all >/dev/null 2>&1 || true
	modprobe -r vgpu 2>/dev/null || true
fi
# Only the places that install.sh writes to, whatever the list says by now.
while read -r file; do
	case $file in
	*/../*) note "not removed: $file" ;;
	"$lib"/* | "$prefix/bin/vgpu-smi" | "$prefix/bin/vgpu-cdi" | \
		"$prefix/bin/vgpu-doctor" | \
		/etc/ld.so.conf.d/00-vgpu.conf | /etc/udev/rules.d/60-vgpu.rules | \
		/usr/src/vgpu-@VERSION@/*)
		rm -f "$root$file"
		;;
	*) note "not removed: $file" ;;
	esac
done <"$root$lib/manifest"
find "$root/usr/src/vgpu-@VERSION@" -depth -type d -exec rmdir {} + 2>/dev/null || true
rmdir "$root$lib" || note "$root$lib is kept: it holds files of others"
if [ -n "$root" ]; then
	# See install.sh.
	folder=/usr/lib64
	[ -e "$root$folder/libc.so.6" ] || folder=
	ldconfig -r "$root" ${folder:+"$folder"}
else
	ldconfig
	! command -v udevadm >/dev/null || udevadm control --reload || true
fi
