# SPDX-License-Identifier: Apache-2.0
# The guest's kernel driver: its calls against a host that only opens and closes channels,
# or lies, and the guest library over it with a vgpud.
# shellcheck shell=bash disable=SC2034,SC2154,SC2016

# shellcheck source=module.sh
. "$top/tests/vm/module.sh"

test_driver_serves_and_refuses_what_it_should() {
	local commands=(early works wait bad-calls bad-maps isolation pipe orphan)
	driver
	program module
	fake_host
	with_fake_host "for c in ${commands[*]}; do module \$c; done"
	all_right "${commands[@]}"
}

# Milliseconds from the ring before the kill to the host's look at the closed channel.
cleanup_times() {
	awk '$2 == "ring" && $3 == 0 { rung = $1 }
		$2 == "closed" && rung { print $1 - rung; rung = 0 }' host.log | sort -n
}

test_thousand_killed_processes_leave_nothing() {
	driver
	program module
	fake_host
	with_fake_host 'module kills 20
		before=$(sed -n "s/MemFree: *\([0-9]*\) kB/\1/p" /proc/meminfo)
		module kills 1000
		after=$(sed -n "s/MemFree: *\([0-9]*\) kB/\1/p" /proc/meminfo)
		echo "kB lost: $((before - after))"
		[ $((before - after)) -lt 4096 ] && echo "memory is back"
		pids=
		for i in 1 2 3 4 5 6 7; do
			module hold >/run/hold.$i &
			pids="$pids $!"
		done
		for n in $(seq 200); do
			[ "$(cat /run/hold.* | grep -c holding)" -lt 7 ] || break
			sleep 0.1
		done
		module open
		kill $pids
		wait'
	# KASAN keeps freed memory for a while; kmemleak judges there.
	kernel_has CONFIG_KASAN || has out "memory is back"
	has out "open: right"
	same "channels closed" "$(grep -c closed host.log)" "$(grep -c open host.log)"
	cleanup_times | awk '{ ms[NR] = $1 } END {
		printf "ms from kill to close: median %s, longest %s of %d\n",
			ms[int((NR + 1) / 2)], ms[NR], NR }'
}

test_random_calls_leave_the_kernel_whole() {
	local lie
	driver
	program module
	program module-random
	fake_host
	# Its last children keep channels, and with them extents where one of the next
	# program should follow the others.
	with_fake_host 'module-random 60 1 && {
		killall -q -9 module-random
		while pidof module-random >/dev/null; do sleep 0.1; done
		module works
	}' --add module-random
	all_right works
	fake_host --lie noise
	with_fake_host 'module-random 20 2
		echo 0000:00:01.0 >/sys/bus/pci/drivers/vgpu/unbind && rmmod vgpu &&
			echo "unload: right"' --add module-random
	all_right unload
}

# refused_header FIELD=VALUE : the driver does not take the device
refused_header() {
	fake_host --set "$1"
	with_fake_host '[ -e /dev/vgpu0 ] || echo "no device: right"'
	all_right "no device"
}

test_headers_that_lie_are_refused() {
	driver
	program module
	refused_header shm_size=0x20000000
	refused_header extents_off=0xffffffffffe00000
	refused_header n_extents=0xffffffff
	refused_header owners_off=0x1000
	refused_header protocol_version=4
}

# lie NAME MESSAGE : what a program of the guest gets
lie() {
	fake_host --lie "$1"
	with_fake_host "module hold >/run/first & sleep 1; module open; kill %1; true"
	grep -qF "open: $2" out || { cat out && return 1; }
}

test_answers_that_lie_are_refused() {
	driver
	program module
	lie area "Protocol error"
	lie beyond "Invalid argument"
	lie unlisted "Permission denied"
	lie twice "Permission denied"
	fake_host --lie generation
	with_fake_host 'module afresh'
	all_right afresh
}

test_foreign_device_is_left_alone() {
	driver
	${CC:-cc} -static -O2 -Wall -Wextra -Werror -o device "$top/tests/vm/device.c"
	python3 "$top/tests/vm/ivshmem-server.py" "$PWD/sock" 4096 32 >server.log &
	while [ ! -S sock ]; do sleep 0.05; done
	guest_with_module 'device 32; ls /dev/vgpu0 || echo "no device: right"' \
		--socket "$PWD/sock" --add device
	wait $!
	all_right "no device"
	same "number of doorbells heard" "$(grep -c ^doorbell server.log)" 32
}

# By the page tables, as the kernel shows them. Without the driver it is another one.
test_memory_is_mapped_write_back() {
	need_kernel_with CONFIG_PTDUMP_DEBUGFS
	driver
	program module
	fake_host
	with_fake_host 'mount -t debugfs debugfs /sys/kernel/debug
		device=/sys/bus/pci/devices/0000:00:01.0
		module mapping
		module file-refused $device/resource2
		rmmod vgpu
		echo 1 >$device/enable
		module file-mapping $device/resource2'
	grep -E "^(driver|sysfs): " out
	all_right mapping file-refused file-mapping
}

test_driver_in_use_stays_and_device_can_be_taken() {
	driver
	program module
	fake_host
	with_fake_host 'module hold >/run/hold & hold=$!
		until grep -q holding /run/hold; do sleep 0.1; done
		module file-refused /sys/bus/pci/devices/0000:00:01.0/resource2
		rmmod vgpu 2>/run/rmmod && echo "unloaded while in use"
		grep -o "Resource temporarily unavailable" /run/rmmod
		echo 0000:00:01.0 >/sys/bus/pci/drivers/vgpu/unbind
		wait $hold && cat /run/hold
		[ ! -e /dev/vgpu0 ] && echo "node gone: right"
		rmmod vgpu && echo "unload: right"
		insmod /payload/modules/vgpu.ko && module works'
	has out "Resource temporarily unavailable"
	all_right file-refused hold "node gone" unload works
	expect 1 grep "unloaded while in use" out
}

# A file of the folder that a kernel without udev makes for root alone.
test_other_users_and_namespaces() {
	driver
	program module
	fake_host
	with_fake_host 'echo "anna:x:1000:1000::/:/bin/sh" >>/etc/passwd
		echo "otto:x:1001:1001::/:/bin/sh" >>/etc/passwd
		echo "vgpu:x:900:anna" >>/etc/group
		chgrp vgpu /dev/vgpu0
		chmod 660 /dev/vgpu0
		su anna -c "module open" | sed s/^/anna-/
		su otto -c "module open" | sed s/^/otto-/
		mkdir -p /run/c/dev
		cp '"$PWD"'/module /run/c/
		numbers=$(printf "%d %d" $(stat -c "0x%t 0x%T" /dev/vgpu0))
		mknod /run/c/dev/vgpu0 c $numbers
		unshare -m -p -i -u -n -f chroot /run/c /module works |
			sed s/^/container-/
		chmod 666 /dev/vgpu0
		su anna -c "unshare -U -r '"$PWD"'/module works" | sed s/^/user-/'
	all_right anna-open container-works user-works
	has out "otto-open: Permission denied"
	grep -q " uid 1000 module$" host.log
}

# The driver waits for the host: QEMU crashes when a device that is gone is interrupted.
test_device_is_taken_from_a_process_and_given_back() {
	driver
	program module
	fake_host --slow
	guest_to_plug 'echo booted; come; module hold; go; echo taken
		come; module works' --add module
	plug sock
	say_when out holding
	unplug taken
	wait "$fake"
	grep -q " left$" host.log
	fake_host
	plug sock
	expect 0 wait "$machine"
	all_right hold works
	has out clean
}

# The library's calls fail, and the next process is served by the device that comes.
test_device_is_taken_from_a_computing_program() {
	# shellcheck source=../../scripts/lib/vgpud.sh
	. "$top/scripts/lib/vgpud.sh"
	driver
	run_dir=$PWD
	start_vgpud soft ivshmem
	guest_to_plug "echo booted; come; $checked 0 1 128 || echo \"ended with \$?\"
		go; echo taken; come; $build/tests/e2e/e2e-vectoradd" \
		--lib "$(product libcuda.so.1)" --add "$checked" \
		--add "$build/tests/e2e/e2e-vectoradd" --env VGPU_LOG=error \
		--env ASAN_OPTIONS=detect_leaks=0
	plug vgpud.sock
	say_when out computing
	unplug taken
	plug vgpud.sock
	expect 0 wait "$machine"
	stop_vgpud
	# Its exit status for a call that failed; killed by SIGBUS it would be 135.
	has out "ended with 2"
	python3 "$top/tests/reasons/troubleshooting.py" "$top/docs/troubleshooting.md" \
		removed 999 err
	has out "vectorAdd: 1048576 values, 0 wrong: PASS"
	has out clean
}

# sign KEY CERTIFICATE TO : the driver, by a program that is with the headers
sign() {
	[ -x "$headers/scripts/sign-file" ] ||
		skip_option "no sign-file in $headers"
	"$headers/scripts/sign-file" sha256 "$1" "$2" "$module" "$3"
}

# only_signed KEY CERTIFICATE ERROR OPTION... : a locked guest takes the driver with a
# signature of this key; without one, or with that of a key that nobody knows, it has the
# error. A program computes over the signed one.
only_signed() {
	local program=$build/tests/e2e/e2e-vectoradd
	openssl req -new -x509 -newkey rsa:2048 -nodes -subj /CN=nobody \
		-keyout nobody.pem -out nobody.crt 2>openssl.log
	sign nobody.pem nobody.crt foreign.ko
	sign "$1" "$2" signed.ko
	# shellcheck source=../../scripts/lib/vgpud.sh
	. "$top/scripts/lib/vgpud.sh"
	run_dir=$PWD
	start_vgpud soft ivshmem
	expect 0 guest --timeout "$limit" --socket "$PWD/vgpud.sock" \
		--lib "$(product libcuda.so.1)" --add "$program" \
		--add "$module:/unsigned.ko" --add foreign.ko:/foreign.ko \
		--add signed.ko:/signed.ko --env ASAN_OPTIONS=detect_leaks=0 \
		"${@:4}" -- sh -c 'echo # after what the firmware has written
		mount -t securityfs none /sys/kernel/security
		echo "lockdown: $(cat /sys/kernel/security/lockdown)"
		for name in unsigned foreign signed; do
			echo "$name: $(insmod /$name.ko 2>&1 && echo loaded)"
			[ ! -e /dev/vgpu0 ] || echo "$name: there is a device"
		done
		"$0" && rmmod vgpu && echo "unload: right"
		dmesg | grep -E "locked down|module is rejected|module loading is"' \
		"$program" >out || { cat out && return 1; }
	stop_vgpud
	grep -F ": $3" out
	has out "lockdown: none [integrity] confidentiality"
	same "number of refusals" "$(grep -cE "^(unsigned|foreign): .*: $3$" out)" 2
	has out "signed: loaded"
	same "devices" "$(grep "a device$" out)" "signed: there is a device"
	grep "vectorAdd: .* 0 wrong: PASS" out
	all_right unload
}

# The kernel is locked from its command line on. Its build's key is in its keyring.
test_locked_kernel_takes_a_signed_driver_and_no_other() {
	local keys=$kernel/linux/certs
	need_kernel_with CONFIG_MODULE_SIG
	[ -e "$keys/signing_key.pem" ] ||
		skip_option "no key of the kernel's build (run --kernel debug)"
	driver
	only_signed "$keys/signing_key.pem" "$keys/signing_key.x509" \
		"Operation not permitted" --append lockdown=integrity
}

# The key is one that the firmware has in its variable db, as the package ovmf has it for
# tests: the firmware starts a kernel that is signed with it, and the kernel trusts it.
test_secure_boot_takes_a_signed_driver_and_no_other() {
	local uefi=/usr/share/OVMF code=OVMF_CODE_4M.snakeoil.fd
	local flash=if=pflash,format=raw
	local keys=/usr/share/ovmf/PkKek-1-snakeoil
	[ -z "$kernel" ] || need_kernel_with CONFIG_EFI_STUB
	[ -e $uefi/OVMF_VARS_4M.snakeoil.fd ] || skip_option "no UEFI (package ovmf)"
	command -v sbsign >/dev/null || skip_option "no sbsign (package sbsigntool)"
	driver
	guest -- true
	openssl rsa -in $keys.key -passin pass:snakeoil -out key.pem 2>openssl.log
	sbsign --key key.pem --cert $keys.pem --output kernel.signed \
		"${VGPU_GUEST_DIR:-$build/guest}/kernel.image"
	cp $uefi/OVMF_VARS_4M.snakeoil.fd vars.fd
	only_signed key.pem $keys.pem "Key was rejected by service" \
		--qemu "-machine smm=on -kernel $PWD/kernel.signed" \
		--qemu "-global driver=cfi.pflash01,property=secure,value=on" \
		--qemu "-drive $flash,unit=0,readonly=on,file=$uefi/$code" \
		--qemu "-drive $flash,unit=1,file=$PWD/vars.fd"
	grep "locked down from EFI Secure Boot" out
}
