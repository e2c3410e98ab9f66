# SPDX-License-Identifier: Apache-2.0
# scripts/vgpu-run: a program against a private vgpud.
# shellcheck shell=bash disable=SC2154,SC2016

vgpu_run() { timeout -k 5 180 "$top/scripts/vgpu-run" "$@"; }

# No process and no folder of vgpu-run remains in $PWD.
nothing_left() {
	local process
	same "folders left behind" "$(ls -A "$PWD/run")" ""
	for process in /proc/[0-9]*; do
		[[ $(tr '\0' ' ' 2>/dev/null <"$process/cmdline") != *"$PWD/run"* ]] || {
			note "left behind: $(tr '\0' ' ' <"$process/cmdline")"
			return 1
		}
	done
}

test_vgpu_run_passes_input_output_and_exit_status() {
	mkdir run
	export XDG_RUNTIME_DIR=$PWD/run
	echo "some text" | expect 5 \
		vgpu_run --driver soft -- \
		sh -c 'cat; printf "%s|" "$@"; echo err >&2; exit 5' sh "a b" "" \
		>out 2>err
	same "standard output" "$(cat out)" $'some text\na b||'
	same "standard error" "$(cat err)" err
	nothing_left
}

test_vgpu_run_names_the_libcuda_that_answers() {
	vgpu_run --driver soft --check 2>err
	grep -qE '^libcuda.so.1 is /.*/lib/libcuda.so.1, the one of vGPU$' err
	has err "device 0: vGPU softgpu (CPU)"
}

test_vgpu_run_names_the_libcuda_that_answers_in_a_guest() {
	expect 3 vgpu_run --vm --driver soft --check -- sh -c 'exit 3' 2>err
	grep -qE '^libcuda.so.1 is /lib/.*/libcuda.so.1, the one of vGPU$' err
	has err "device 0: vGPU softgpu (CPU)"
}

# vgpud must never load the shim as its own driver.
test_vgpu_run_sets_the_library_path_for_the_program_only() {
	vgpu_run --driver soft -- sh -c '
		folder=$(dirname "$VGPU_SOCKET")
		for process in /proc/[0-9]*; do
			grep -qasF "$folder/vgpud.conf" "$process/cmdline" || continue
			echo "vgpud $(tr "\0" "\n" <"$process/environ" |
				grep -c "^LD_LIBRARY_PATH")"
		done
		echo "program $LD_LIBRARY_PATH"' >out
	grep -q "^vgpud 0$" out
	grep -q "^program /.*/lib" out
	same "daemons with the path" "$(grep -c "^vgpud [1-9]" out || true)" 0
}

test_vgpu_run_that_is_terminated_leaves_nothing() {
	mkdir run
	export XDG_RUNTIME_DIR=$PWD/run
	"$top/scripts/vgpu-run" --driver soft -- sh -c 'echo up; exec sleep 1000' >out &
	until grep -qs up out; do
		kill -0 $!
		sleep 0.05
	done
	kill -TERM $!
	expect 143 wait "$!"
	nothing_left
}

test_vgpu_run_passes_input_and_a_signal_into_the_guest() {
	mkdir run
	export XDG_RUNTIME_DIR=$PWD/run TMPDIR=$PWD/run
	echo "some text" | expect 139 vgpu_run --vm --driver soft -- \
		sh -c 'cat; kill -SEGV $$' >out 2>err
	has out "some text"
	same "bash's own words" "$(grep -c 'line [0-9]' err || true)" 0
	nothing_left
	env --default-signal "$top/scripts/vgpu-run" --vm --driver soft -- \
		sh -c 'echo up; sleep 1000' >out </dev/null &
	until grep -qs up out; do
		kill -0 $!
		sleep 0.1
	done
	kill -INT $!
	expect 130 wait "$!"
	nothing_left
}

test_vgpu_run_says_why_vgpud_does_not_start() {
	expect 125 vgpu_run --driver no-such -- true 2>err
	grep -q "driver is auto, nvidia, soft, null" err
}
