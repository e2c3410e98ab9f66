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

# Without a kernel module nobody tells the host: the next process to open the device
# does, long before the guest is gone.
test_session_of_a_killed_guest_process_ends_when_the_next_one_opens() {
	cat >script <<-'END'
		"$1" 2048 >/dev/null 2>&1 &
		until grep -q resource2 /proc/$!/maps; do
			kill -0 $! || exit 1
			sleep 0.1
		done
		sleep 2
		kill -9 $!
		echo "killed $!"
		"$2" 1024
		sleep 2
	END
	"$top/scripts/vgpu-run" --vm --driver "${1:-soft}" --log log --add script \
		--add "$build/tests/e2e/e2e-matrixmul" \
		--add "$build/tests/e2e/e2e-vectoradd" -- \
		sh "$PWD/script" "$build/tests/e2e/e2e-matrixmul" \
		"$build/tests/e2e/e2e-vectoradd" >out || true
	has out "vectorAdd: 1024 values, 0 wrong: PASS"
	sed '/has gone/,$d' log >while-guest-was-there
	local pid
	pid=$(sed -n "s/^killed //p" out)
	grep -q "session ended .* pid=$pid " while-guest-was-there
}
