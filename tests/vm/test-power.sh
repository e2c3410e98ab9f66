# SPDX-License-Identifier: Apache-2.0
# Sleep of the machine and reset of the device, over the guest's kernel driver: a process
# stores all the time and a call of it waits, whose reply may come during sleep or reset.
# shellcheck shell=bash disable=SC2034,SC2154,SC2016

# shellcheck source=module.sh
. "$top/tests/vm/module.sh"

# For a script in the guest, around the event that the process has to outlast.
outlast='begin() {
	module outlast /run/go >/run/outlast &
	process=$!
	until grep -q outlasting /run/outlast; do sleep 0.1; done
}
end() {
	touch /run/go
	wait $process
	cat /run/outlast
	module works
}
'

# sleeping_guest SCRIPT : with a host that keeps its replies back
sleeping_guest() {
	driver
	program module
	fake_host --hold
	begin_guest "$outlast$1" --socket "$PWD/sock" --add module
}

# The replies come now.
reply() { kill -USR1 "$fake"; }

# outlasted WORD... : the guest ends well, and said these lines
outlasted() {
	local word
	expect 0 wait "$machine" || { cat out err && return 1; }
	wait "$fake"
	all_right outlast works
	for word in clean "$@"; do
		has out "$word"
	done
}

# Its reply comes while the guest sleeps. QEMU loads an uncompressed kernel anew when the
# machine wakes, over what was there.
test_channel_outlasts_suspend_to_memory() {
	local tries=0 folder=${VGPU_GUEST_DIR:-$build/guest}
	guest_options+=(--qemu "-kernel $folder/kernel.image")
	sleeping_guest 'begin
		echo deep >/sys/power/mem_sleep
		echo mem >/sys/power/state && echo awake
		end'
	until [[ $(qmp query-status) == *suspended* ]]; do
		tries=$((tries + 1))
		[ $tries -lt $((limit * 5)) ] || { cat out && return 1; }
		sleep 0.2
	done
	reply
	qmp system_wakeup
	outlasted awake
}

# QEMU's clock does not wake a machine that is only idle; its port for input does. On a
# busy machine, input that came before the guest slept was seen to leave it asleep for
# ever.
test_channel_outlasts_suspend_to_idle() {
	local input=input tries=0
	mkfifo input
	exec 9<>input
	sleeping_guest 'begin
		echo s2idle >/sys/power/mem_sleep
		echo enabled >/sys/class/tty/ttyS3/power/wakeup
		echo "falls asleep"
		until echo mem >/sys/power/state; do sleep 1; done
		echo awake
		end'
	say_when out "falls asleep"
	reply
	sleep 20
	until grep -q awake out; do
		tries=$((tries + 1))
		[ $tries -lt $limit ] && kill -0 "$machine" || break
		echo >&9
		sleep 1
	done
	outlasted awake
}

# The image is made, and the machine goes on because there is no place for it.
test_channel_outlasts_hibernation_that_finds_no_swap() {
	sleeping_guest 'begin
		echo reboot >/sys/power/disk
		echo disk >/sys/power/state
		dmesg | grep -q "Cannot find swap device" && echo "no swap"
		echo awake
		end'
	say_when out awake
	reply
	outlasted "no swap"
}

# The kernel suspends down to a level, and resumes after 5 s by itself.
test_channel_outlasts_each_level_of_suspend() {
	local level words=()
	need_kernel_with CONFIG_PM_SLEEP_DEBUG
	for level in freezer devices platform processors core; do
		words+=("mem $level")
	done
	sleeping_guest 'begin
		echo deep >/sys/power/mem_sleep
		for level in freezer devices platform processors core; do
			echo $level >/sys/power/pm_test
			echo mem >/sys/power/state && echo mem $level
		done
		end'
	say_when out "mem core"
	reply
	outlasted "${words[@]}"
}

# After these levels of hibernation the kernel tells its drivers that it was restored from
# an image: the process has no memory any more, and the next one is served.
test_channel_ends_with_each_level_of_restoring() {
	local level
	need_kernel_with CONFIG_PM_SLEEP_DEBUG
	driver
	program module
	fake_host
	begin_guest "$outlast"'echo reboot >/sys/power/disk
		for level in devices platform processors core; do
			rm -f /run/outlast
			begin
			echo $level >/sys/power/pm_test
			echo disk >/sys/power/state
			status=0
			wait $process || status=$?
			echo "$level: $status"
			module works | sed "s/^/$level-/"
		done' --socket "$PWD/sock" --add module
	expect 0 wait "$machine" || { cat out err && return 1; }
	wait "$fake"
	for level in devices platform processors core; do
		has out "$level: 135" # SIGBUS
		all_right "$level-works"
	done
	has out clean
}

# The port resets what is behind it, three times.
test_channel_outlasts_reset_of_the_device() {
	driver
	program module
	fake_host --hold
	guest_to_plug "$outlast"'echo booted
		come
		device=$(echo /sys/bus/pci/drivers/vgpu/0*)
		begin
		for n in 1 2 3; do
			echo 1 >$device/reset && echo "reset $n"
		done
		end' --add module
	plug sock
	say_when out "reset 3"
	reply
	outlasted "reset 1" "reset 2"
}
