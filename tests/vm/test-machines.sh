# SPDX-License-Identifier: Apache-2.0
# Machines other than those of the other tests: one with UEFI, by the lines of
# qemu/README.md, and one that gets the device while it runs.
# shellcheck shell=bash disable=SC2034,SC2154,SC2016

# host : a vgpud in this folder, for one machine at ./vgpud.sock with 4 GiB
host() {
	# shellcheck source=../../scripts/lib/vgpud.sh
	. "$top/scripts/lib/vgpud.sh"
	run_dir=$PWD vm_lines='size = 4G'
	start_vgpud soft ivshmem
}

# uefi NUMBER : a block of code in "UEFI" of qemu/README.md
uefi() {
	sed -n '/^## UEFI$/,/^## [^U]/p' "$top/qemu/README.md" | awk -v number="$1" '
		$0 == "```" { inside = 0 }
		inside
		$0 == "```sh" { inside = ++n == number }' | sed 's/\\$//'
}

# compute SCRIPT [OPTION...] : a guest in which the script runs before a program computes
compute() {
	guest --lib "$(product libcuda.so.1)" --timeout "$limit" --add "$checked" \
		"${@:2}" -- sh -c "$1"$'\nexec "$0" 10 2 128' "$checked" >out
}

test_guest_of_uefi_computes() {
	local image=${VGPU_GUEST_DIR:-$build/guest}/kernel.image
	[ -e /usr/share/OVMF/OVMF_CODE_4M.fd ] || skip_option "no UEFI (package ovmf)"
	guest -- true
	# It starts as a program of UEFI, unlike the unpacked one.
	[ -e "$image" ] || skip_option "no $image"
	host
	bash -euc "$(uefi 1)"
	compute '[ -d /sys/firmware/efi ] || exit 3' --socket "$PWD/vgpud.sock" \
		--qemu "$(uefi 2) -kernel $image"
	grep -q "10 rounds right" out
}

# With this much RAM a window begins at no multiple of 4 GiB.
test_device_of_4_gib_at_a_port_of_a_running_machine_computes() {
	local machine tries=0
	host
	compute 'echo booted
		until grep -q 0x1110 /sys/bus/pci/devices/*/device; do sleep 0.2; done
		for device in /sys/bus/pci/devices/*; do
			[ "$(cat $device/device)" != 0x1110 ] || echo 1 >$device/enable
		done' --memory 5120 --qmp "$PWD/qmp.sock" \
		--qemu "-device pcie-root-port,id=root1,chassis=1,pref64-reserve=8G" &
	machine=$!
	until [ -e out ] && grep -q booted out; do
		kill -0 $machine
		sleep 0.1
	done
	qmp chardev-add '{"id": "vgpu", "backend": {"type": "socket", "data":
		{"server": false, "addr": {"type": "unix", "data":
		{"path": "'"$PWD/vgpud.sock"'"}}}}}'
	qmp device_add '{"driver": "ivshmem-doorbell", "id": "device", "bus": "root1",
		"chardev": "vgpu", "vectors": 32}'
	wait $machine
	grep -q "10 rounds right" out
}

qmp() { python3 "$top/tests/vm/qmp.py" qmp.sock "$@"; }
