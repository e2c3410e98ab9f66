# SPDX-License-Identifier: Apache-2.0
# qemu/run-guest: input, output and statuses.
# shellcheck shell=bash disable=SC2154,SC2016

test_output_is_passed_on_byte_for_byte() {
	head -c 300000 /dev/urandom >out
	printf 'a\r\nb\nc\0d\xff\x13\x11\x03' >err
	expect 0 guest --add out --add err -- sh -c "cat $PWD/out; cat $PWD/err >&2" \
		>out.back 2>err.back
	cmp out out.back
	cmp err err.back
}

test_input_reaches_the_command_byte_for_byte_and_ends() {
	head -c 60000 /dev/urandom >in
	expect 4 guest -- sh -c 'cat; echo ended >&2; exit 4' <in >out 2>err
	cmp in out
	has err ended
}

# A process that writes to it never ends.
test_command_need_not_read_its_input() {
	local fd
	mkfifo endless
	exec {fd}<>endless
	echo first >&"$fd"
	expect 0 guest -- head -n 1 <endless >out
	has out first
}

test_input_that_is_closed_is_empty() {
	expect 0 guest -- sh -c 'cat; echo read all' <&- >out
	has out "read all"
}

# no_guest_left FOLDER : neither a process nor a file of a guest in that folder remains
no_guest_left() {
	local process
	same "what is left" "$(ls -A "$1")" ""
	for process in /proc/[0-9]*; do
		! grep -qsaF "$1/vgpu-guest" "$process/cmdline" || {
			note "left behind: $(tr '\0' ' ' <"$process/cmdline")"
			return 1
		}
	done
}

test_signals_end_the_guest_and_leave_nothing() {
	local signal status
	mkdir run
	for signal in INT:130 TERM:143 HUP:129; do
		status=${signal#*:}
		# Commands in the background of a script ignore SIGINT.
		TMPDIR=$PWD/run env --default-signal "$top/qemu/run-guest" -- \
			sh -c 'echo up; sleep 1000' >out 2>err </dev/null &
		until grep -qs up out; do
			kill -0 $!
			sleep 0.1
		done
		kill "-${signal%:*}" $!
		expect "$status" wait "$!"
		same "standard error" "$(cat err)" ""
		no_guest_left "$PWD/run"
	done
}

test_output_that_cannot_be_written_ends_the_guest_with_125() {
	mkdir run
	TMPDIR=$PWD/run expect 125 guest -- echo text >/dev/full 2>err
	has err "run-guest: standard output cannot be written: No space left on device"
	no_guest_left "$PWD/run"
}

test_memory_that_is_too_small_is_named() {
	expect 125 guest --memory 64 -- true 2>err
	grep -q "^run-guest: --memory 64 may be too small: this guest has 256 MiB" err
}

test_variable_is_passed_on_by_its_name() {
	FROM_HERE="a b" expect 0 guest --env FROM_HERE -- sh -c 'echo "$FROM_HERE"' >out
	has out "a b"
	expect 125 guest --env NOT_HERE -- true 2>err
	grep -q "NOT_HERE: there is no such variable here" err
}

# If a guest can have only one processor, QEMU's TCG omits its memory barriers.
test_guest_of_one_processor_has_room_for_two_under_tcg() {
	guest --accel tcg --show -- true >out
	grep -q "'-smp' '1,maxcpus=2'" out
	guest --accel kvm --show -- true >out
	grep -q "'-smp' '1'" out
	guest --accel tcg -- sh -c 'cat /sys/devices/system/cpu/possible; nproc' >out
	same "processors that are possible, and there" "$(tr '\n' ' ' <out)" "0-1 1 "
}

test_arguments_environment_and_folder_arrive_unchanged() {
	printf '%s|' "it's" '$HOME "x" \n' $'two\nlines' '' '*' >expected
	pwd >>expected
	printf '%s' "a 'b' c" >>expected
	guest --env "WORD=a 'b' c" --cwd "$PWD" -- \
		sh -c 'printf "%s|" "$@"; pwd; printf "%s" "$WORD"' sh \
		"it's" '$HOME "x" \n' $'two\nlines' '' '*' >out
	cmp expected out
}

test_exit_status_is_the_commands() {
	expect 7 guest -- sh -c 'exit 7'
}

test_killed_command_ends_with_128_plus_signal() {
	expect 139 guest -- sh -c 'kill -SEGV $$'
}

test_command_that_is_not_there_ends_with_127() {
	expect 127 guest -- /no/such/command
}

test_time_limit_ends_the_guest_with_124() {
	expect 124 guest --timeout 6 -- sleep 1000 2>err
	grep -q "killed after its 6 s" err
}

test_linked_program_finds_its_libraries() {
	cat >program.c <<'END'
#include <math.h>
#include <stdio.h>
#include <zstd.h>
int main(int argc, char **argv)
{
	printf("%.3f %d %s\n", cos(argc - 2), ZSTD_isError(0), argv[1]);
	return 3;
}
END
	${CC:-cc} -o program program.c -lzstd -lm
	expect 3 guest -- ./program word >out
	has out "1.000 0 word"
}

test_folder_is_copied_whole() {
	mkdir -p tree/inner
	echo text >tree/inner/file
	guest --add tree:/data -- cat /data/inner/file >out
	has out text
}

test_forced_tcg_memory_and_processors_reach_qemu() {
	guest --accel tcg --memory 333 --cpus 2 --show -- true >out
	grep -q "'-smp' '2'" out
	grep -q "'-accel' 'tcg'" out
	grep -q "'-m' '333M'" out
}

# The result of an earlier boot of this machine must not count.
test_kvm_is_judged_by_a_probe_guest_once_per_boot() {
	export XDG_CACHE_HOME=$PWD/cache
	mkdir -p cache/vgpu
	printf 'another-boot\nkvm\n' >cache/vgpu/accel
	guest --show -- true >out
	grep -q "^$(cat /proc/sys/kernel/random/boot_id) " cache/vgpu/accel
	answer=$(tail -n 1 cache/vgpu/accel)
	grep -q "'-accel' '$answer'" out
	sed -i '2s/.*/kvm/' cache/vgpu/accel
	guest --show -- true >out
	grep -q "'-accel' 'kvm'" out
}
