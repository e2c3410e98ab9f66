# SPDX-License-Identifier: Apache-2.0
# vgpu-doctor in a guest: with the device by sysfs and by the kernel's driver, for root
# and a user, and without a device.
# shellcheck shell=bash disable=SC2034,SC2154,SC2016

# shellcheck source=../../scripts/lib/vgpud.sh
. "$top/scripts/lib/vgpud.sh"

# host : a vgpud in this folder, for one machine at ./vgpud.sock
host() {
	run_dir=$PWD
	start_vgpud soft ivshmem
}

# For a script in the guest: examine NAME [COMMAND...] runs vgpu-doctor, by that command;
# each line of its output begins with the name.
examine='examine() {
	name=$1 rc=0
	shift
	"$@" >/run/$name || rc=$?
	sed "s/^/$name> /" /run/$name
	echo "$name: $rc"
}
'

# machine SCRIPT [OPTION...] : a guest that runs it, output in the file out; it has both
# libraries and vgpu-doctor
machine() {
	printf '%s\n' "$examine$1" >script
	guest --lib "$(product libcuda.so.1)" --lib "$(product libnvidia-ml.so.1)" \
		--add "$(product vgpu-doctor):/bin/vgpu-doctor" --add script \
		--env ASAN_OPTIONS=detect_leaks=0 "${@:2}" -- sh "$PWD/script" >out ||
		{ cat out >&2 && return 1; }
}

# says NAME PATTERN : a line of that examination matches
says() {
	grep -qE "^$1> .*$2" out || {
		note "no line of $1 matches '$2':"
		cat out >&2
		return 1
	}
}

test_doctor_names_what_a_user_lacks_for_the_device() {
	host
	machine '
		chmod 660 /sys/bus/pci/devices/*/resource[02]
		chmod 1777 /run
		echo vgpu:x:4000: >>/etc/group
		echo anna:x:1000:1000::/:/bin/sh >>/etc/passwd
		examine root vgpu-doctor
		examine stranger su anna -c vgpu-doctor
		su anna -c "touch /run/started
			until [ -e /run/go ]; do sleep 0.2; done
			vgpu-doctor" >/run/output &
		until [ -e /run/started ]; do sleep 0.2; done
		sed -i "s/^vgpu:.*/vgpu:x:4000:anna/" /etc/group
		touch /run/go
		wait $!
		examine early cat /run/output
		chgrp vgpu /sys/bus/pci/devices/*/resource[02]
		examine member su anna -c vgpu-doctor
		examine json su anna -c "vgpu-doctor --json"
		mount -t securityfs none /sys/kernel/security
		echo integrity >/sys/kernel/security/lockdown
		examine locked vgpu-doctor' --socket "$PWD/vgpud.sock"
	has out "root: 0"
	says root "ok    device: PCI device 0000:.*, without a driver"
	says root "WARN  driver: vgpu is not installed"
	says root "ok    way: the device by sysfs, [0-9]+ MiB"
	says root "ok    host: vgpud is alive"
	says root "ok    libcuda: .*/libcuda.so.1, by "
	says root "ok    call: CUDA .*softgpu"
	says root "ok    kernel: a kernel has run, and its 1000 results are right"
	says root "ok    nvml: .*softgpu"
	has out "stranger: 1"
	says stranger "FAIL  way: this user may not open the vGPU device"
	says stranger "FAIL  group: anna is not in the group vgpu"
	says stranger "usermod -aG vgpu anna, then log in again"
	says stranger "WARN  call: not tried"
	says early "FAIL  group: anna was added to the group vgpu after this login"
	has out "member: 0"
	says member "ok    group: anna may open the device"
	says member "ok    kernel: "
	has out 'json>   "level": "warn",'
	has out "locked: 1"
	says locked "FAIL  driver: the kernel is locked down"
	says locked "FAIL  way: the kernel lets no program map"
	same "sessions" "$(grep -c 'session ended .*launches=1 ' vgpud.log)" 3
	stop_vgpud
}

test_doctor_of_a_guest_with_the_driver_looks_for_its_device() {
	driver
	host
	machine '
		examine fine vgpu-doctor
		mv /dev/vgpu0 /dev/hidden
		examine hidden vgpu-doctor' --module "$module" --socket "$PWD/vgpud.sock"
	has out "fine: 0"
	says fine "ok    device: PCI device 0000:.*, of the kernel's driver vgpu"
	says fine "ok    driver: vgpu is loaded, and has a device"
	says fine "ok    way: the kernel's driver, [0-9]+ MiB"
	says fine "ok    kernel: a kernel has run, and its 1000 results are right"
	says fine "ok    nvml: .*softgpu"
	same "what is not fine" "$(grep -cE '^fine> (WARN|FAIL)' out || true)" 0
	has out "hidden: 1"
	says hidden "WARN  driver: vgpu is loaded, but there is no /dev/vgpu0 here"
	says hidden "FAIL  way: the kernel's driver vgpu has taken the vGPU device"
	stop_vgpud
}

test_doctor_tells_a_foreign_device_from_none() {
	machine 'examine none vgpu-doctor'
	has out "none: 1"
	says none "FAIL  device: this machine has no vGPU device"
	says none "attach one on the host"
	truncate -s 64M shared
	machine 'examine foreign vgpu-doctor' --plain "$PWD/shared,64M"
	has out "foreign: 1"
	says foreign "WARN  device: ivshmem device 0000:.* is of another use"
	says foreign "FAIL  way: no vgpud is behind the ivshmem device"
}
