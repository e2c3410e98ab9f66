# SPDX-License-Identifier: Apache-2.0
# CUDA programs in a guest, computed on the host: the demo is the test.
# shellcheck shell=bash disable=SC2034,SC2154

demo() { timeout -k 5 500 "$top/scripts/demo" --no-install --driver soft "$@"; }

test_programs_of_the_driver_api_compute_in_the_guest() {
	demo --programs plain >out || { cat out && return 1; }
	same "programs that are right" "$(grep -c ': right in the guest' out)" 3
	grep -q "^on the host: the driver is .*softgpu" out
}

test_programs_of_nvcc_compute_in_the_guest() {
	[ -e "$build/tests/e2e/nvcc/nvcc-vectoradd-static" ] || skip_option "no nvcc here"
	demo --programs nvcc >out || { cat out && return 1; }
	same "programs that are right" "$(grep -c ': right in the guest' out)" 3
}

# A program for each family of memory, for graphs, and for parts of a device.
families_compute() {
	local runtime=$1 name programs=() words=()
	for name in conditional host-memory ipc managed memory-nodes nodes partition \
		pool register virtual; do
		programs+=("$build/tests/e2e/nvcc/nvcc-$name-$runtime")
		words+=(--add "$build/tests/e2e/nvcc/nvcc-$name-$runtime")
	done
	[ -e "${programs[0]}" ] || skip_option "no nvcc here"
	cat >script <<-END
		for program; do "\$program" || echo "\$program ended with \$?"; done
	END
	timeout -k 5 300 "$top/scripts/vgpu-run" --vm --timeout 280 --driver soft \
		--add script "${words[@]}" "${@:2}" -- \
		sh "$PWD/script" "${programs[@]}" >out
	same "programs that are right" "$(grep -c ', 0 wrong: PASS' out)" ${#programs[@]}
	expect 1 grep "ended with" out
}

test_families_of_the_runtime_compute_in_the_guest() { families_compute static; }

test_families_of_the_shared_runtime_compute_in_the_guest() {
	local library=/usr/local/cuda/lib64/libcudart.so.13
	[ -e "$library" ] || skip_option "no libcudart.so.13 here"
	families_compute shared --add "$(realpath "$library"):$library"
}

test_programs_compute_in_the_guest_when_every_call_waits() {
	VGPU_SYNC=1 demo --programs plain >out || { cat out && return 1; }
	same "programs that are right" "$(grep -c ': right in the guest' out)" 3
}

# No doorbell, no socket: both sides map a file and poll.
test_program_computes_in_the_guest_over_ivshmem_plain() {
	# shellcheck source=../../scripts/lib/vgpud.sh
	. "$top/scripts/lib/vgpud.sh"
	run_dir=$PWD
	start_vgpud soft plain
	guest --plain "$PWD/vgpud.mem,4G" --lib "$(product libcuda.so.1)" -- \
		"$build/tests/e2e/e2e-vectoradd" >out
	stop_vgpud
	has out "vectorAdd: 1048576 values, 0 wrong: PASS"
	grep -q "session ended .* launches=1 .* bytes_h2d=8388608" vgpud.log
}

# QEMU maps the pages, and the programs' memory is mapped in parts smaller than a page.
test_programs_compute_in_the_guest_in_reserved_huge_pages() {
	local name names=(vectoradd test-register test-host-memory) words=()
	local pool=/sys/kernel/mm/hugepages/hugepages-2048kB
	[ -r $pool/free_hugepages ] &&
		[ $(($(<$pool/free_hugepages) - $(<$pool/resv_hugepages))) -ge 64 ] ||
		skip_option "needs 64 free huge pages of 2 MiB (vm.nr_hugepages)"
	# shellcheck source=../../scripts/lib/vgpud.sh
	. "$top/scripts/lib/vgpud.sh"
	run_dir=$PWD
	vm_lines=$'size = 128M\nhugepages = hugetlb\nmax-processes = 3'
	start_vgpud soft ivshmem
	for name in "${names[@]}"; do
		[ ! -e "$build/tests/e2e/e2e-$name" ] ||
			words+=(--add "$build/tests/e2e/e2e-$name")
	done
	echo 'for p; do "$p" || echo "$p ended with $?"; done' >script
	guest --socket "$PWD/vgpud.sock" --lib "$(product libcuda.so.1)" "${words[@]}" \
		--add script --env ASAN_OPTIONS=detect_leaks=0 -- \
		sh "$PWD/script" "${names[@]/#/$build/tests/e2e/e2e-}" >out
	stop_vgpud
	has out "vectorAdd: 1048576 values, 0 wrong: PASS"
	grep -q "^ok .*kernels_and_program_share_registered_memory" out
	grep -q "^ok .*program_and_kernel_share_memory_at_one_address" out
	expect 1 grep -E "^not ok|ended with" out
}

# Control: the demo detects wrong results.
test_demo_fails_on_a_device_that_computes_nothing() {
	expect 1 demo --programs plain --driver null >out
	grep -q "vectoradd: WRONG: exit status 1" out
}

# The host gets no notification of a killed process: others in
# the guest do, long before the guest is gone.
killed_process_ends_before_its_guest() {
	local pid
	"$top/scripts/vgpu-run" --vm --driver soft --log log --add script \
		--add "$checked" --env ASAN_OPTIONS=detect_leaks=0 -- \
		sh "$PWD/script" "$checked" >out || true
	sed '/the VM disconnected/,$d' log >while-guest-was-there
	pid=$(sed -n "s/^killed //p" out)
	grep -q "session ended .* pid=$pid " while-guest-was-there
}

# start NAME ARGUMENT... : in the guest, `checked` in the background, until it computes
define_start='checked=$1
start() {
	name=$1 && shift
	"$checked" "$@" >/run/$name 2>&1 &
	until grep -q computing /run/$name; do
		kill -0 $! || exit 1
		sleep 0.1
	done
}'

test_session_of_a_killed_process_ends_when_the_next_one_opens() {
	cat >script <<-END
		$define_start
		start first endless
		kill -9 \$!
		echo "killed \$!"
		"\$checked" 1 1
		sleep 10
	END
	killed_process_ends_before_its_guest
	has out "1 rounds right"
}

test_session_of_a_killed_process_is_ended_by_one_that_runs() {
	cat >script <<-END
		$define_start
		start first 0 1
		start second endless
		kill -9 \$!
		echo "killed \$!"
		sleep 10
	END
	killed_process_ends_before_its_guest
}

# The device remains when vgpud is killed: only the heartbeat stops.
test_host_that_dies_in_mid_call_ends_the_call() {
	local runner child
	cat >script <<-END
		"\$1" endless 2>&1 || echo "ended with \$?"
	END
	"$top/scripts/vgpu-run" --vm --driver soft --add script \
		--add "$checked" --env ASAN_OPTIONS=detect_leaks=0 -- \
		sh "$PWD/script" "$checked" >out 2>err &
	runner=$!
	until grep -q computing out; do
		kill -0 "$runner"
		sleep 0.1
	done
	for child in $(cat "/proc/$runner/task/$runner/children"); do
		[ "$(cat "/proc/$child/comm")" != vgpud ] || kill -9 "$child"
	done
	wait "$runner" || true
	has out "ended with 2"
	grep -q "cuCtxSynchronize.*CUDA_ERROR_UNKNOWN" out
}

# The guest's files were written a moment ago, so its clock is ahead (programs/images.c).
test_second_process_of_a_program_in_the_guest_sends_no_code() {
	local program=$build/tests/e2e/e2e-images
	cat >script <<-END
		"\$1" self
		"\$1" self
	END
	"$top/scripts/vgpu-run" --vm --driver soft --log log --add script \
		--add "$program" --env HOME=/tmp --env AHEAD_S=10 -- \
		sh "$PWD/script" "$program"
	grep -o "images_sent=.* image_bytes=[0-9]*" log >counts
	same "sessions" "$(wc -l <counts)" 2
	head -1 counts | grep -qE "^images_sent=1 images_found=0 image_bytes=[1-9]"
	tail -1 counts | grep -qx "images_sent=0 images_found=1 image_bytes=0"
}

# Two processes, two workers, and a descriptor that travels inside the guest.
test_processes_in_the_guest_share_memory() {
	local share=$build/tests/e2e/e2e-test-share ipc=$build/tests/e2e/e2e-test-ipc
	[ -e "$share" ] || skip_option "no clang here"
	cat >script <<-END
		for program; do "\$program" || echo "ended with \$?"; done
	END
	"$top/scripts/vgpu-run" --vm --driver soft --log log --add script \
		--add "$share" --add "$ipc" --env ASAN_OPTIONS=detect_leaks=0 -- \
		sh "$PWD/script" "$share" "$ipc" >out
	grep -q "^ok .*what_one_process_allocates_the_other_opens" out
	grep -q "^ok .*streams_of_one_process_wait_for_events_of_another" out
	grep -q "^ok .*what_one_process_writes_the_other_reads" out
	grep -q "^ok .*allocations_of_a_pool_are_shared" out
	expect 1 grep -E "^not ok|ended with" out
}

# The shared memory is that of a PCI device here, not a memfd.
test_memory_of_programs_in_the_guest_is_registered() {
	local program=$build/tests/e2e/e2e-test-register
	[ -e "$program" ] || skip_option "no clang here"
	"$top/scripts/vgpu-run" --vm --driver soft --log log --add "$program" \
		--env ASAN_OPTIONS=detect_leaks=0 -- "$program" >out
	grep -q "^ok .*kernels_and_program_share_registered_memory" out
	grep -q "^ok .*neighbours_of_registered_memory_keep_their_bytes" out
	grep -q "^ok .*a_forked_child_has_its_own_copy" out
	expect 1 grep -E "^not ok|SKIP" out
}

test_memory_on_the_host_is_mapped_in_the_guest() {
	local program=$build/tests/e2e/e2e-test-host-memory
	[ -e "$program" ] || skip_option "no clang here"
	"$top/scripts/vgpu-run" --vm --driver soft --log log --add "$program" \
		--env ASAN_OPTIONS=detect_leaks=0 -- "$program" >out
	grep -q "^ok .*program_and_kernel_share_memory_at_one_address" out
	grep -q "^ok .*program_and_device_have_the_rights_that_were_set" out
	expect 1 grep -E "^not ok|SKIP" out
}
