#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: install.sh [OPTION...]
#
# Installs the vGPU guest library into this Linux system: libcuda.so.1 in a folder of
# its own, which the loader is told of, a group whose members may use the vGPU device,
# and a udev rule that gives the device to that group at every start. libnvidia-ml.so.1
# is in the same folder, and in PREFIX/bin are vgpu-smi, which shows the GPUs, vgpu-cdi,
# which gives them to containers, and vgpu-doctor, which looks for what keeps programs
# from them. Needs root.
#
# The kernel's driver (kernel-driver.md) is put into /usr/src for DKMS, and built where
# dkms and the headers of the running kernel are there. Without it programs use the device
# by sysfs.
#
#   --user NAME    also put that user into the group (may be given more than once; a
#                  user who is logged in must log in again)
#   --group NAME   the group (default: vgpu; made if it is not there)
#   --replace      install although another libcuda.so.1, NVIDIA's for example, is
#                  there: programs find ours first, the other is not touched, and
#                  uninstall.sh gives it back its place
#   --root DIR     install into the system below DIR, an image of a guest for example
#   --prefix DIR   (default: /usr/local)
#   --help, --version
#
# uninstall.sh, which is installed too (PREFIX/lib/vgpu/uninstall.sh), removes all of it
# but the group.
#
# exit status: 0 installed, 1 not installed (a message says why; no file is left behind),
# 125 wrong command line
set -eu

here=$(cd -- "$(dirname -- "$0")" && pwd)
prefix=/usr/local root='' group=vgpu users='' replace=''

note() { printf 'install.sh: %s\n' "$*" >&2; }
die() { note "$@" && exit 1; }
usage() { note "$@" "(--help tells more)" && exit 125; }
need() { [ -n "${2:-}" ] || usage "$1 needs a value"; }

while [ $# -gt 0 ]; do
	case $1 in
	--user) need "$@" && users="$users $2" && shift ;;
	--group) need "$@" && group=$2 && shift ;;
	--replace) replace=yes ;;
	--root) need "$@" && root=$2 && shift ;;
	--prefix) need "$@" && prefix=$2 && shift ;;
	-h | --help) sed -n '3,${/^#/!q;s/^# \{0,1\}//p}' "$0" && exit 0 ;;
	--version) printf '%s (vGPU) %s\n' "${0##*/}" '@VERSION@' && exit 0 ;;
	*) usage "unknown argument: $1" ;;
	esac
	shift
done
case $prefix in /*) ;; *) usage "--prefix must be an absolute path" ;; esac
root=${root%/}
lib=$prefix/lib/vgpu
bin=$prefix/bin
conf=/etc/ld.so.conf.d/00-vgpu.conf
rule=/etc/udev/rules.d/60-vgpu.rules
driver=/usr/src/vgpu-@VERSION@

#
# What must hold before anything is changed
#

# Whether glibc's loader is there, and not the one that gcompat of musl has in its place.
# In the system below $root a link to an absolute path is one within that system.
has_glibc() {
	loader=$root/lib64/ld-linux-x86-64.so.2
	target=$(readlink "$loader") || target=
	case $target in /*) loader=$root$target ;; esac
	grep -qs GLIBC_PRIVATE "$loader"
}

# The oldest glibc that has all symbols the library asks for, and the one that is here.
check_system() {
	[ "$(uname -m)" = x86_64 ] || die "only x86-64 guests are supported"
	has_glibc ||
		die "no glibc here: the library needs it, and gcompat of musl is none"
	[ -z "$root" ] || return 0
	need=$(cat "$here/glibc-version")
	have=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/.* //')
	[ -n "$have" ] || return 0
	first=$(printf '%s\n%s\n' "$need" "$have" | sort -V | head -n 1)
	[ "$first" = "$need" ] || die "glibc $have is here, $need or later is needed"
}

# Every libcuda.so.1 that a program could find today, ours left out.
other_libraries() {
	{
		[ -n "$root" ] || ldconfig -p 2>/dev/null |
			sed -n 's/^[[:space:]]*libcuda\.so\.1 .* => //p'
		for folder in /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/lib \
			/lib/x86_64-linux-gnu /lib64 /usr/local/lib \
			/usr/lib/x86_64-linux-gnu/nvidia/current; do
			[ ! -e "$root$folder/libcuda.so.1" ] ||
				echo "$folder/libcuda.so.1"
		done
	} | while read -r file; do
		# One folder may have several names.
		[ -n "$root" ] || file=$(readlink -f "${file%/*}")/${file##*/}
		[ "$file" = "$lib/libcuda.so.1" ] || echo "$file"
	done | sort -u
}

check_others() {
	others=$(other_libraries)
	[ -n "$others" ] || return 0
	if [ -z "$replace" ]; then
		note "another libcuda.so.1 is installed:"
		printf '%s\n' "$others" >&2
		die "with --replace programs find ours instead of it"
	fi
	note "programs will find ours instead of:" "$others"
}

check_user() {
	grep -q "^$1:" "$root/etc/passwd" || id "$1" >/dev/null 2>&1 ||
		die "there is no user $1"
}

#
# Changes. Each new file is named in the manifest before it is there.
#

# put MODE FROM TO
put() {
	printf '%s\n' "$3" >>"$root$lib/manifest"
	cp "$2" "$root$3.new"
	chmod "$1" "$root$3.new"
	mv "$root$3.new" "$root$3"
}

install_files() {
	mkdir -p "$root$lib" "$root$bin" "$root${conf%/*}" "$root${rule%/*}"
	printf '%s\n' "$lib/manifest" >"$root$lib/manifest"
	for name in libcuda.so libnvidia-ml.so; do
		put 755 "$here/lib/$name.1" "$lib/$name.1"
		printf '%s\n' "$lib/$name" >>"$root$lib/manifest"
		ln -sf "$name.1" "$root$lib/$name"
	done
	put 755 "$here/vgpu-smi" "$bin/vgpu-smi"
	put 755 "$here/vgpu-cdi" "$bin/vgpu-cdi"
	put 755 "$here/vgpu-doctor" "$bin/vgpu-doctor"
	put 755 "$here/uninstall.sh" "$lib/uninstall.sh"
	sed "s/@GROUP@/$group/g" "$here/60-vgpu.rules" >"$root$lib/rule.tmp"
	put 644 "$root$lib/rule.tmp" "$rule"
	printf '%s\n' "$lib" >"$root$lib/rule.tmp"
	put 644 "$root$lib/rule.tmp" "$conf"
	rm -f "$root$lib/rule.tmp"
}

install_driver_source() {
	for name in $(cd "$here/kmod" && find . -type f); do
		mkdir -p "$root$driver/$(dirname "$name")"
		put 644 "$here/kmod/$name" "$driver/${name#./}"
	done
}

# How to get the driver is said where it cannot be built now; the rest works without.
build_driver() {
	kernel=$(uname -r)
	if ! command -v dkms >/dev/null ||
		[ ! -e "/lib/modules/$kernel/build" ]
	then
		note "the kernel's driver is not built: that needs dkms and" \
			"linux-headers-$kernel; then: dkms install vgpu/@VERSION@ &&" \
			"modprobe vgpu"
		return
	fi
	if dkms install --force vgpu/@VERSION@ >/dev/null && modprobe vgpu; then
		echo "the kernel's driver is loaded: /dev/vgpu0"
	else
		note "the kernel's driver could not be built or loaded (under Secure" \
			"Boot its key has to be enrolled first): programs use the" \
			"device by sysfs"
	fi
}

# The ldconfig of this system knows the folders of this system: /usr/lib64 of RHEL and its
# like is none where Debian runs it, and would be lost from the cache.
tell_loader() {
	if [ -n "$root" ]; then
		folder=/usr/lib64
		[ -e "$root$folder/libc.so.6" ] || folder=
		ldconfig -r "$root" ${folder:+"$folder"}
		return
	fi
	ldconfig
	found=$(ldconfig -p | sed -n 's/^[[:space:]]*libcuda\.so\.1 .* => //p' |
		head -n 1)
	[ "$found" = "$lib/libcuda.so.1" ] || die "programs still find $found: does" \
		"/etc/ld.so.conf include /etc/ld.so.conf.d/*.conf?"
}

make_group() {
	! grep -q "^$group:" "$root/etc/group" || return 0
	if command -v groupadd >/dev/null; then
		groupadd --system ${root:+--root "$root"} "$group"
	elif [ -z "$root" ]; then
		addgroup -S "$group"
	else
		die "groupadd is missing here"
	fi
}

add_user() {
	if command -v usermod >/dev/null; then
		usermod ${root:+--root "$root"} -aG "$group" "$1"
	elif [ -z "$root" ]; then
		addgroup "$1" "$group"
	else
		die "usermod is missing here"
	fi
}

# What the rule does, now, for a device that is there already.
open_devices() {
	! command -v udevadm >/dev/null || udevadm control --reload || true
	for device in /sys/bus/pci/devices/*; do
		[ "$(cat "$device/vendor" "$device/device" 2>/dev/null | tr '\n' ' ')" = \
			"0x1af4 0x1110 " ] || continue
		echo 1 >"$device/enable"
		for file in "$device/resource0" "$device/resource2"; do
			chgrp "$group" "$file"
			chmod 660 "$file"
		done
		opened=yes
	done
	for device in /dev/vgpu[0-9]*; do
		[ ! -e "$device" ] || chgrp "$group" "$device"
	done
}

take_back() {
	"$here/uninstall.sh" --root "$root/" --prefix "$prefix" ||
		note "something may be left in $root$lib"
	exit 1
}

check_system
[ "$(id -u)" -eq 0 ] || die "needs root"
check_others
for user in $users; do
	check_user "$user"
done
trap take_back EXIT
install_files
install_driver_source
make_group
for user in $users; do
	add_user "$user"
done
tell_loader
opened=
[ -n "$root" ] || build_driver
[ -n "$root" ] || open_devices
trap - EXIT
printf 'installed in %s; members of the group %s may use the device\n' "$lib" "$group"
[ -n "$root" ] || [ -n "$opened" ] ||
	note "no vGPU device is here now; the udev rule opens it when there is one"
