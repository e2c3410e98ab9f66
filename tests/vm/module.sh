# SPDX-License-Identifier: Apache-2.0
# What the tests of the guest's kernel driver share. Sourced by test-module.sh and
# test-power.sh.
# shellcheck shell=bash disable=SC2034,SC2154,SC2016

# program NAME : builds a test program of the guest
program() {
	${CC:-cc} -static -O2 -Wall -Wextra -Werror -Wno-missing-field-initializers \
		-I"$top/guest-shim" -I"$top/protocol/include" -o "$1" \
		"$top/tests/vm/$1.c"
}

# fake_host [ARGUMENT...] : its log in host.log
fake_host() {
	rm -f sock
	python3 "$top/tests/vm/module-host.py" "$PWD/sock" "$@" >host.log &
	fake=$!
	while [ ! -S sock ]; do sleep 0.05; done
}

# kernel_has OPTION : whether one was given, and has it
kernel_has() {
	[ -n "$kernel" ] && grep -qx "$1=y" "$kernel/linux/.config"
}

# need_kernel_with OPTION : skips the test, unless a kernel that has it was given
need_kernel_with() {
	kernel_has "$1" ||
		skip_option "the guest's kernel has no $1 (run --kernel debug has it)"
}

# For a script in the guest: what the kernel complained of is in $bad, and printed.
complaints='bad=$(dmesg | grep -E "'$complaint'")
echo "$bad"'

# guest_with_module SCRIPT [OPTION...] : its output in the file out; then the kernel's
# complaints are looked for
guest_with_module() {
	local script=$1
	shift
	printf 'PATH=$PATH:%s\n%s\n%s\n' "$PWD" "$script" "$complaints" >script
	echo '[ -z "$bad" ]' >>script
	expect 0 guest --timeout $limit --module "$module" --add script "$@" -- \
		sh "$PWD/script" >out || { cat out && return 1; }
}

# with_fake_host SCRIPT [OPTION...]
with_fake_host() {
	guest_with_module "$1" --socket "$PWD/sock" --add module "${@:2}"
	wait "$fake"
}

# all_right COMMAND... : each said so
all_right() {
	local command
	for command; do
		has out "$command: right"
	done
}

qmp() { python3 "$top/tests/vm/qmp.py" qmp.sock "$@"; }

plug() {
	qmp chardev-add '{"id": "c1", "backend": {"type": "socket", "data": {"server":
		false, "addr": {"type": "unix", "data": {"path": "'"$PWD/$1"'"}}}}}'
	qmp device_add '{"driver": "ivshmem-doorbell", "id": "iv1", "bus": "rp1",
		"chardev": "c1", "vectors": 32}'
}

# unplug TEXT : takes the device, and returns when guest and QEMU are done with it
unplug() {
	# QEMU crashes if the chardev goes before the device.
	qmp unplug '{"id": "iv1"}'
	say_when out "$1"
	qmp chardev-remove '{"id": "c1"}'
}

# say_when FILE TEXT
say_when() {
	local tries=0
	until [ -e "$1" ] && grep -qF -- "$2" "$1"; do
		tries=$((tries + 1))
		[ $tries -lt $((limit * 7)) ] || { note "never '$2' in $1" && return 1; }
		sleep 0.1
	done
}

port="-device pcie-root-port,id=rp1,chassis=1,slot=1,pref64-reserve=8G"

# begin_guest SCRIPT [OPTION...] : in the background, its process in $machine; its
# standard input is the file $input, if set
begin_guest() {
	printf '%s\n' "PATH=\$PATH:$PWD" "$1" "$complaints" \
		'[ -n "$bad" ] || echo clean' >script
	guest --timeout "$limit" --module "$module" --qmp "$PWD/qmp.sock" \
		--add script "${@:2}" -- \
		sh "$PWD/script" <"${input:-/dev/null}" >out 2>err &
	machine=$!
	until [ -S qmp.sock ]; do sleep 0.1; done
}

# The same; the guest waits for a device by itself.
guest_to_plug() {
	begin_guest 'come() { until [ -e /dev/vgpu0 ]; do sleep 0.1; done; }
		go() { while [ -e /dev/vgpu0 ]; do sleep 0.1; done; }
		'"$1" --qemu "$port" "${@:2}"
	say_when out booted
}
