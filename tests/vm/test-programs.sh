# SPDX-License-Identifier: Apache-2.0
# CUDA programs in a guest, computed on the host: the demo is the test.
# shellcheck shell=bash disable=SC2154

demo() { timeout -k 5 500 "$top/scripts/demo" --no-install --driver soft "$@"; }

test_programs_of_the_driver_api_compute_in_the_guest() {
	demo --programs plain >out || { cat out && return 1; }
	same "programs that are right" "$(grep -c ': right in the guest' out)" 3
}

test_programs_of_nvcc_compute_in_the_guest() {
	[ -e "$build/tests/e2e/nvcc/nvcc-vectoradd-static" ] || skip_option "no nvcc here"
	demo --programs nvcc >out || { cat out && return 1; }
	same "programs that are right" "$(grep -c ': right in the guest' out)" 3
}

# A demo that would believe anything is worth nothing.
test_demo_fails_on_a_device_that_computes_nothing() {
	expect 1 demo --programs plain --driver null >out
	grep -q "vectoradd: WRONG: exit status 1" out
}

test_session_of_a_killed_guest_process_ends() {
	cat >script <<-'END'
		"$1" 100000000 >/dev/null 2>&1 &
		sleep 1
		kill -9 $!
		exec "$1" 1024
	END
	"$top/scripts/vgpu-run" --vm --driver soft --log log --add script -- \
		sh "$PWD/script" "$build/tests/e2e/e2e-vectoradd" >out
	grep -q "vectorAdd: 1024 values, 0 wrong: PASS" out
	same "sessions that ended" "$(grep -c "session ended" log)" 2
}
