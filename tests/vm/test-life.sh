# SPDX-License-Identifier: Apache-2.0
# The life of a VM with the device in use: reset, reboot, stop, sudden end, replacement of
# the broker, other VMs at the same time.
# shellcheck shell=bash disable=SC2034,SC2154

# host : a vgpud in this folder, for one machine at ./vgpud.sock
host() {
	# shellcheck source=../../scripts/lib/vgpud.sh
	. "$top/scripts/lib/vgpud.sh"
	run_dir=$PWD
	start_vgpud soft ivshmem
}

# machine OUTPUT [OPTION...] -- SCRIPT : a guest in the background with the script, which
# has `checked`; its process in $machine
machine() {
	local out=$1 options=()
	shift
	while [ "$1" != -- ]; do
		options+=("$1") && shift
	done
	printf '%s\n' "$2" >"$out.sh"
	guest --socket "$PWD/vgpud.sock" --lib "$(product libcuda.so.1)" \
		--add "$checked" --env checked="$checked" \
		--env ASAN_OPTIONS=detect_leaks=0 --add "$out.sh" "${options[@]}" -- \
		sh "$PWD/$out.sh" >"$out" 2>"$out.err" &
	machine=$!
}

# until_says FILE TEXT [N] : waits until that many lines have the text
until_says() {
	local tries=0
	until [ -e "$1" ] && [ "$(grep -cF -- "$2" "$1")" -ge "${3:-1}" ]; do
		tries=$((tries + 1))
		if [ $tries -gt 1500 ] || ! kill -0 "$machine"; then
			note "never ${3:-1} × '$2' in $1:"
			cat "$1" vgpud.log >&2
			return 1
		fi
		sleep 0.1
	done
}

qmp() { python3 "$top/tests/vm/qmp.py" qmp.sock "$1"; }

end_machine() {
	qmp quit
	wait "$machine" || true
}

child_of_vgpud() {
	local child
	for child in $(cat "/proc/$vgpud_pid/task/$vgpud_pid/children"); do
		[ "$(cat "/proc/$child/comm" 2>/dev/null)" != "$1" ] || echo "$child"
	done
}

# How often the processes began to wait, all of their threads together.
switches() {
	local pid
	for pid; do
		cat "/proc/$pid/task/"*/status
	done | awk '/^voluntary/ { n += $2 } END { print n }'
}

# comes_to_rest SECONDS NAME... : waits until vgpud and its children of these names are
# idle, that is, hardly ever begin to wait in that time; work in flight completes first
comes_to_rest() {
	local seconds=$1 tries=0 before rest name
	local -a pids=("$vgpud_pid")
	shift
	for name; do
		mapfile -t -O "${#pids[@]}" pids < <(child_of_vgpud "$name")
	done
	while true; do
		before=$(switches "${pids[@]}")
		sleep "$seconds"
		rest=$(($(switches "${pids[@]}") - before))
		[ $rest -ge 100 ] || return 0
		tries=$((tries + 1))
		[ $tries -lt 10 ] || {
			note "$rest wakes in $seconds s"
			return 1
		}
	done
}

# An idle VM holds no channel, no extent and hardly any memory.
nothing_held() {
	local tries=0 held=
	until held=$(PYTHONPATH=$top/tests/soak python3 -c 'import sys, books
held = books.held_in_guest(int(sys.argv[1]))
sys.exit("; ".join(held) if held else 0)' "$vgpud_pid" 2>&1); do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || {
			note "$held"
			return 1
		}
		sleep 0.1
	done
}
test_sixteen_processes_compute_in_the_guest_at_once() {
	host
	machine out -- '
		for i in $(seq 16); do
			$checked 0 $i 128 >/run/out.$i 2>&1 &
			pids="$pids $!"
		done
		for i in $(seq 16); do
			until grep -q computing /run/out.$i; do sleep 0.1; done
		done
		echo "all compute"
		kill -TERM $pids
		for pid in $pids; do
			wait $pid && echo right
		done'
	wait "$machine"
	same "sessions at once" \
		"$(sed '/session ended/,$d' vgpud.log | grep -c 'session opened')" 16
	same "programs that are right" "$(grep -c '^right' out)" 16
	stop_vgpud
}

test_reset_of_a_machine_ends_its_sessions_and_the_next_boot_computes() {
	host
	machine out --qmp qmp.sock --reboot -- '
		$checked 0 1 128 >/run/computing 2>&1 &
		until grep -q computing /run/computing; do sleep 0.1; done
		$checked 20 2 128 && echo booted
		sleep 1000'
	until_says out booted
	qmp system_reset
	until_says out booted 2
	until_says vgpud.log "was reset"
	# The resources of the first boot are released, the second boot has two channels.
	until_says vgpud.log "session ended" 3
	same "sessions" "$(grep -c 'session opened' vgpud.log)" 4
	end_machine
	until_says_ended 4
}

# until_says_ended N : the same for the end of the VM
until_says_ended() {
	local tries=0
	until [ "$(grep -c 'session ended' vgpud.log)" -ge "$1" ]; do
		tries=$((tries + 1))
		[ $tries -lt 600 ]
		sleep 0.1
	done
	stop_vgpud
}

test_panic_and_reset_of_a_machine_end_its_sessions_and_the_next_boot_computes() {
	host
	TMPDIR=$PWD machine out --qmp qmp.sock --reboot --append panic=0 -- '
		$checked 0 1 128 >/run/computing 2>&1 &
		until grep -q computing /run/computing; do sleep 0.1; done
		$checked 20 2 128 && echo booted
		sleep 1
		echo c >/proc/sysrq-trigger'
	until_says out booted
	until_says "$(echo vgpu-guest.*/port0)" "Kernel panic"
	qmp system_reset
	until_says out booted 2
	until_says vgpud.log "was reset"
	until_says vgpud.log "session ended" 3
	end_machine
	until_says_ended 4
}

test_reboot_inside_the_guest_is_like_a_reset() {
	host
	machine out --qmp qmp.sock --reboot -- '
		$checked 20 2 128 && echo booted
		$checked 0 1 128 >/run/computing 2>&1 &
		until grep -q computing /run/computing; do sleep 0.1; done
		sleep 1
		reboot -f'
	until_says out booted 2
	until_says vgpud.log "was reset"
	end_machine
	stop_vgpud
}

test_machine_that_is_killed_leaves_nothing_and_the_next_one_computes() {
	local qemu
	host
	machine out --qmp qmp.sock -- '$checked 0 1 128'
	until_says out computing
	qemu=$(pgrep -f "unix:qmp.sock,server" | while read -r pid; do
		[[ $(cat "/proc/$pid/comm") != qemu* || ! /proc/$pid/cwd -ef . ]] ||
			echo "$pid"
	done)
	kill -9 "$qemu"
	wait "$machine" || true
	machine out -- '$checked 20 1 128'
	until_says vgpud.log "session ended"
	wait "$machine"
	has out "20 rounds right"
	stop_vgpud
}

# The program goes on for as long as this takes, however slow the machine is: what
# tells the guest that it is over is a quota, within which another program works at last:
# with the first it gets one of its three arrays, which leaves the other program enough.
test_broker_is_killed_and_replaced_under_a_program_in_the_guest() {
	local broker pid big="$build/tests/e2e/e2e-vectoradd"
	host
	echo "device-memory = 40M" >>vgpud.conf
	kill -HUP "$vgpud_pid"
	until grep -q "is in force" vgpud.log; do sleep 0.05; done
	machine out --add "$big" -- "
		\$checked 0 1 256 &
		echo pid \$!
		until $big 8388608 2>/dev/null; do sleep 0.5; done
		kill -TERM \$!
		wait \$!"
	until_says out computing
	pid=$(sed -n 's/^pid //p' out)
	for signal in KILL USR2 KILL HUP KILL; do
		broker=$(child_of_vgpud vgpud-broker)
		case $signal in
		KILL) kill -9 "$broker" ;;
		*) kill "-$signal" "$vgpud_pid" ;;
		esac
		until [ -n "$(child_of_vgpud vgpud-broker)" ] &&
			[ "$(child_of_vgpud vgpud-broker)" != "$broker" ]; do
			sleep 0.05
		done
		sleep 2.2
	done
	same "ends of the session" \
		"$(grep -c "session ended .*pid=$pid " vgpud.log || true)" 0
	sed -i 's/^device-memory = .*/device-memory = 1G/' vgpud.conf
	kill -HUP "$vgpud_pid"
	wait "$machine"
	has out "vectorAdd: 8388608 values, 0 wrong: PASS"
	grep -q "rounds right" out
	grep -q "session ended .*pid=$pid .*reason=closed" vgpud.log
	stop_vgpud
}

# compute SOCKET : within the smaller quota, and then only within the larger
compute() {
	guest --socket "$PWD/$1" --lib "$(product libcuda.so.1)" --add "$checked" \
		--add "$build/tests/e2e/e2e-vectoradd" -- \
		sh -c "$checked 100 7 512; $build/tests/e2e/e2e-vectoradd 8388608"
}

test_two_machines_compute_at_once_each_with_its_quota() {
	local first second
	host
	# The first one gets a quota, and another beside it, while vgpud runs.
	cat >>vgpud.conf <<-END
		device-memory = 64M
		[vm two]
		socket = $PWD/two.sock
		device-memory = 1G
	END
	kill -HUP "$vgpud_pid"
	until grep -q "is in force" vgpud.log; do sleep 0.05; done
	compute vgpud.sock >private.out 2>&1 &
	first=$!
	compute two.sock >two.out 2>&1 &
	second=$!
	wait "$first" || true
	wait "$second"
	has private.out "100 rounds right"
	has two.out "100 rounds right"
	grep -q "CUDA_ERROR_OUT_OF_MEMORY" private.out
	has two.out "vectorAdd: 8388608 values, 0 wrong: PASS"
	grep -q "session ended vm=private .*reason=closed" vgpud.log
	grep -q "session ended vm=two .*reason=closed" vgpud.log
	stop_vgpud
}

test_machine_that_never_says_hello_costs_and_holds_nothing() {
	host
	machine out --qmp qmp.sock -- 'echo up; sleep 1000'
	until_says out up
	nothing_held
	same "workers beside the warm one" "$(child_of_vgpud vgpu-worker | wc -l)" 1
	# The heartbeat changes ten times a second, and nothing else happens.
	comes_to_rest 3 vgpud-broker vgpu-worker
	end_machine
	stop_vgpud
}

test_stopped_machine_is_not_dead_and_costs_nothing() {
	host
	# Its clock is stopped with it.
	machine out --qmp qmp.sock -- '
		$checked 0 1 256 >/run/computing 2>&1 &
		until grep -q computing /run/computing; do sleep 0.1; done
		echo computing
		sleep 10
		kill -TERM $!
		wait $! && echo right'
	until_says out computing
	qmp stop
	comes_to_rest 3 vgpu-worker
	same "sessions that ended" "$(grep -c 'session ended' vgpud.log || true)" 0
	qmp cont
	wait "$machine"
	has out right
	stop_vgpud
}
