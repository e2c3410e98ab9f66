# SPDX-License-Identifier: Apache-2.0
# NVML in a guest: beside a program that computes, and while the host is away.
# shellcheck shell=bash disable=SC2034,SC2154,SC2016

# host : a vgpud in this folder, for one machine at ./vgpud.sock
host() {
	# shellcheck source=../../scripts/lib/vgpud.sh
	. "$top/scripts/lib/vgpud.sh"
	run_dir=$PWD
	start_vgpud soft ivshmem
}

# machine SCRIPT : a guest that runs it, output in the file out; it has both libraries,
# vgpu-smi and the program of tests/nvml
machine() {
	local program=$build/tests/nvml/nvml-program
	printf '%s\n' "$1" >script
	guest --socket "$PWD/vgpud.sock" --lib "$(product libcuda.so.1)" \
		--lib "$(product libnvidia-ml.so.1)" \
		--add "$(product vgpu-smi):/bin/vgpu-smi" \
		--add "$program:/bin/nvml-program" --add script \
		--env ASAN_OPTIONS=detect_leaks=0 -- sh "$PWD/script" >out 2>err
}

test_nvml_in_a_guest_shows_the_program_that_computes_on_its_device() {
	host
	machine '
		mkfifo /run/input
		nvml-program compute nc stay </run/input >/run/program &
		exec 9>/run/input
		until grep -q listed /run/program; do
			kill -0 $! || { cat /run/program; exit 1; }
			sleep 0.2
		done
		cat /run/program
		echo "pid $!"
		vgpu-smi
		vgpu-smi -L
		form=csv,noheader,nounits
		vgpu-smi --query-compute-apps=pid,used_memory --format=$form
		vgpu-smi --query-gpu=uuid,memory.used --format=$form
		exec 9>&-
		wait $! || exit 1
		nvml-program compute cn
		nvml-program cycle 1000' || { cat out err >&2 && return 1; }
	local pid uuid
	pid=$(sed -n 's/^pid //p' out)
	uuid=$(sed -n 's/^computed on //p' out | head -n 1)
	has out "listed with 8 MiB"
	has out "$pid, 8"
	has out "$uuid, 8"
	grep -q "^GPU 0: .*softgpu.* (UUID: $uuid)" out
	grep -q "^| *0 *$pid *C *.*nvml-program.* 8MiB *|$" out
	same "lines that are too long" "$(grep -c '.\{81\}' out || true)" 0
	same "programs that are done" "$(grep -c '^done' out)" 1
	same "computed on the same device" "$(grep -c "^computed on $uuid" out)" 2
	has out "1000 cycles leave nothing"
	# Who only looks has no session.
	same "sessions" "$(grep -c 'session opened' vgpud.log)" 2
	stop_vgpud
}

# says TEXT : waits until the guest has said it
says() {
	local tries=0
	until grep -qsxF "$1" out; do
		tries=$((tries + 1))
		if [ $tries -gt 1500 ] || ! kill -0 "$machine"; then
			note "never '$1':"
			cat out err vgpud.log >&2
			return 1
		fi
		sleep 0.1
	done
}

test_nvml_in_a_guest_loses_the_device_until_the_host_is_back() {
	local broker machine
	host
	machine '
		nvml-program watch | while read -r word; do
			echo "$word"
			[ "$word" != lost ] || { vgpu-smi -L; echo "meanwhile $?"; }
		done
		vgpu-smi -L
		echo "afterwards $?"' &
	machine=$!
	says there
	broker=$(cat "/proc/$vgpud_pid/task/$vgpud_pid/children" | tr ' ' '\n' |
		while read -r child; do
			[ "$(cat "/proc/$child/comm" 2>/dev/null)" != vgpud-broker ] ||
				echo "$child"
		done)
	# The keeper first: it would replace a broker that does not answer.
	kill -STOP "$vgpud_pid" "$broker"
	says lost
	# Who comes now does not take what the memory still has for the present.
	says "meanwhile 9"
	kill -CONT "$vgpud_pid" "$broker"
	says back
	wait "$machine"
	has out "afterwards 0"
	stop_vgpud
}
