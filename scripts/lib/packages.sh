# SPDX-License-Identifier: Apache-2.0
# The one list of Debian 12 packages that building and testing need. Sourced after
# common.sh.
# shellcheck shell=bash disable=SC2034,SC2154

packages_build=(
	gcc libc6-dev meson ninja-build pkg-config python3
	liburing-dev libprotobuf-c-dev protobuf-c-compiler libinih-dev libseccomp-dev
	libzstd-dev liblz4-dev nettle-dev libjansson-dev libvirt-dev libxml2-dev
	libmicrohttpd-dev
)
# clang makes PTX from test kernels, and fuzzers; llvm names the functions in what
# these report; gcc's offloading compiler and its runtime's plugin make OpenMP programs;
# clang-format of this version is what scripts/check-style knows; zsh completes; vgpuctl
# attaches domains of libvirt's daemon; the manifests for KubeVirt are YAML; the policy
# for SELinux is compiled, and loaded in a guest
packages_test=(
	clang clang-format-14 libclang-rt-14-dev llvm gcc-12-offload-nvptx
	libgomp-plugin-nvptx1 zsh libvirt-daemon libvirt-daemon-driver-qemu
	libvirt-clients python3-yaml checkpolicy semodule-utils
	policycoreutils selinux-utils
)
# for scripts/test-cross
packages_cross=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
packages_guest=(qemu-system-x86 busybox-static cpio lz4)
# for machines with UEFI, a signed driver, and a host with a systemd of its own
packages_machines=(ovmf sbsigntool systemd-container)
# for the guest's kernel driver: headers of the kernel that qemu/make-guest fetches
packages_driver=(linux-headers-cloud-amd64 make)
# for qemu/make-image; uidmap for users who are not root
packages_image=(mmdebstrap uidmap e2fsprogs)
# for tests/packages/run, with packages_image
packages_packages=(git lintian rpm)
# for tests/vm/debug-kernel
packages_debug_kernel=(bc bison flex gcc libelf-dev libssl-dev lz4 make xz-utils)

package_installed() {
	# shellcheck disable=SC2016 # dpkg-query expands it
	[ "$(dpkg-query -W -f='${Status}' "$1" 2>/dev/null)" = "install ok installed" ]
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

# need_packages install|no-install PACKAGE... : prints and installs missing packages
need_packages() {
	local how=$1 name missing=()
	shift
	command -v dpkg-query >/dev/null ||
		die 125 "this is not a Debian machine; needed packages: $*"
	for name; do
		package_installed "$name" || missing+=("$name")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	[ "$how" = install ] || die 125 "missing packages: ${missing[*]}"
	say "installing missing packages: ${missing[*]}"
	as_root apt-get -qq update || note "the package lists could not be fetched"
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
		--no-install-recommends install "${missing[@]}" >/dev/null ||
		die 125 "apt-get could not install: ${missing[*]}"
}
