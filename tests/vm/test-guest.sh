# SPDX-License-Identifier: Apache-2.0
# qemu/run-guest: what goes in and comes out.
# shellcheck shell=bash disable=SC2154,SC2016

test_output_is_passed_on_byte_for_byte() {
	head -c 300000 /dev/urandom >out
	printf 'a\r\nb\nc\0d\xff\x13\x11\x03' >err
	expect 0 guest --add out --add err -- sh -c "cat $PWD/out; cat $PWD/err >&2" \
		>out.back 2>err.back
	cmp out out.back
	cmp err err.back
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

# The answer of an earlier boot of this machine must not count.
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
