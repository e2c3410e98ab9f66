#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# QEMU with a device of vgpud, confined, for labels-apparmor.sh and labels-selinux.sh,
# which define denials() and the command confine().
#
#   NAME: attached | refused    whether QEMU has the device, "refused" with its reason
#
# and then what denials() prints.
# shellcheck disable=SC3043 # busybox has local

# qemu NAME WORDS... : with this device, as libvirt's user
qemu() {
	local name=$1 said
	shift
	said=$(echo 'info pci
quit' | confine /usr/bin/qemu-system-x86_64 -S \
		-machine q35 -accel tcg -m 64 -nodefaults -display none -monitor stdio \
		"$@" 2>&1)
	case $said in
	*"PCI device 1af4:1110"*) echo "$name: attached" ;;
	*) echo "$name: refused, $(echo "$said" | tail -n 1)" ;;
	esac
	denials "$name"
}

doorbell() {
	qemu "$1" -chardev "socket,id=vgpu,path=/run/vgpud/$2.sock" \
		-device ivshmem-doorbell,chardev=vgpu,vectors=32
}

as_libvirt() {
	/usr/bin/setpriv --reuid 64055 --regid 64055 --clear-groups "$@"
}
