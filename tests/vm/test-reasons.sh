# SPDX-License-Identifier: Apache-2.0
# Messages of the guest library about a missing device, as in docs/troubleshooting.md.
# tests/reasons tests the others without a guest.
# shellcheck shell=bash disable=SC2154,SC2016

# in_guest COMMAND... : in a guest started with $options; its output is in guest.out
# and guest.err
in_guest() {
	expect 0 guest "${options[@]}" --env VGPU_LOG=error \
		--lib "$build/guest-shim/libcuda.so.1" --add "$init" -- "$@" \
		>guest.out 2>guest.err
}

# serves COMMAND... : the command gets its device
serves() {
	in_guest "$@"
	has guest.out "code 0"
}

# is ROW CODE : code and line of the guest are the ones of the row
is() {
	python3 "$top/tests/reasons/troubleshooting.py" "$top/docs/troubleshooting.md" \
		"$1" "$2" guest.err
}

# says ROW COMMAND... : the command ends with the code of the row, and prints its line
says() {
	local row=$1 code
	shift
	in_guest "$@"
	code=$(sed -n 's/^code //p' guest.out)
	is "$row" "${code:-0}"
}

# start_host : a vgpud, whose device the guest gets
start_host() {
	mkdir run
	cat >vgpud.conf <<-END
		[vgpud]
		driver = soft
		[vm one]
		transport = ivshmem
		socket = $PWD/run/sock
	END
	"$build/host-daemon/main/vgpud" --config vgpud.conf 2>vgpud.log &
	while [ ! -S run/sock ]; do sleep 0.05; done
	options+=(--socket "$PWD/run/sock")
}

# with_host COMMAND... : runs it with such a vgpud
with_host() {
	start_host
	"$@"
	kill %1
	wait
}

init=$build/tests/reasons/reasons-program

test_guest_without_device_is_told_to_attach_one() {
	options=()
	says no-device "$init" init
}

test_device_of_another_use_is_told_apart() {
	truncate -s 64M shared
	options=(--plain "$PWD/shared,64M")
	says no-host "$init" init
}

test_user_without_the_group_is_told_to_join_it() {
	options=()
	with_host says no-permission sh -c 'chmod 660 /sys/bus/pci/devices/*/resource2
		echo user:x:1000:1000::/:/bin/sh >>/etc/passwd
		exec su user -c "$0 init"' "$init"
}

test_read_only_sys_is_named_as_the_cause() {
	options=()
	with_host says read-only-sys sh -c \
		'mount -o remount,ro /sys && exec "$0" init' "$init"
}

test_guest_whose_vgpud_is_gone_is_told_so() {
	options=()
	start_host
	in_guest sh -c '"$0" wait; "$0" init' "$init" &
	until grep -q "session opened" vgpud.log; do sleep 0.05; done
	kill -KILL %1
	wait %2
	has guest.out "code 999"
	has guest.out "code 100"
	is gone 999
	is no-answer 100
}

# What the page advises: as a container that is given /sys/devices.
test_read_only_sys_with_writable_devices_will_do() {
	options=()
	with_host serves sh -c 'mkdir /run/kept && mount --bind /sys/devices /run/kept &&
		mount -o remount,ro,bind /sys && mount --bind /run/kept /sys/devices &&
		! echo 2>/dev/null >/sys/power/state && exec "$0" init' "$init"
}

test_locked_kernel_is_named_as_the_cause() {
	options=()
	with_host says lockdown sh -c 'mount -t securityfs none /sys/kernel/security
		echo integrity >/sys/kernel/security/lockdown
		exec "$0" init' "$init"
}

# The kernel's driver, where sysfs cannot go.

test_locked_kernel_serves_over_the_driver() {
	driver
	options=(--module "$module")
	with_host serves sh -c 'mount -t securityfs none /sys/kernel/security
		echo integrity >/sys/kernel/security/lockdown
		grep -q "\[integrity\]" /sys/kernel/security/lockdown || exit 9
		exec "$0" init' "$init"
}

# As under Secure Boot: lockdown from the kernel's command line on.
test_kernel_locked_at_its_start_takes_no_unsigned_driver() {
	driver
	options=(--module "${module/\/signed\//\/}" --append lockdown=integrity)
	with_host says lockdown "$init" init
}

test_read_only_sys_serves_over_the_driver() {
	driver
	options=(--module "$module")
	with_host serves sh -c 'mount -o remount,ro /sys && exec "$0" init' "$init"
}

test_user_without_the_group_of_the_driver_is_told_to_join_it() {
	driver
	options=(--module "$module")
	with_host says driver-denied sh -c 'chmod 660 /dev/vgpu0
		echo user:x:1000:1000::/:/bin/sh >>/etc/passwd
		exec su user -c "$0 init"' "$init"
}

test_container_without_the_device_of_the_driver_is_told_so() {
	driver
	options=(--module "$module")
	with_host says driver-elsewhere sh -c 'rm /dev/vgpu0 && exec "$0" init' "$init"
}
