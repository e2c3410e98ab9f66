# SPDX-License-Identifier: Apache-2.0
# The stock device in a stock guest, without code of this project on either side.
# shellcheck shell=bash disable=SC2154

make_device_program() {
	${CC:-cc} -static -O2 -Wall -Wextra -Werror -o device "$top/tests/vm/device.c"
}

test_doorbell_device_shares_memory_and_rings_every_vector() {
	make_device_program
	python3 "$top/tests/vm/ivshmem-server.py" "$PWD/sock" 4096 32 >server.log &
	while [ ! -S sock ]; do sleep 0.05; done
	guest --socket "$PWD/sock" -- ./device 32 >guest.log
	wait $!
	has guest.log "BAR2 4096 MiB, position 1: written by the host"
	same "number of doorbells heard" "$(grep -c ^doorbell server.log)" 32
	has server.log "doorbell 31 word 0x123456780000001f"
	has server.log "last word written by a guest."
}

test_plain_device_shares_a_file() {
	make_device_program
	truncate -s 64M shared
	printf 'written by the host' | dd of=shared conv=notrunc status=none
	guest --plain "$PWD/shared" -- ./device >guest.log
	has guest.log "BAR2 64 MiB, position 0: written by the host"
	same "last word" "$(tail -c 32 shared | head -c 19)" "written by a guest."
}

test_guest_without_device_says_so() {
	make_device_program
	expect 1 guest -- ./device 2>guest.log
	has guest.log "no ivshmem device"
}

test_absent_server_is_a_failure_of_the_harness() {
	expect 125 guest --socket "$PWD/none" -- true 2>guest.log
	has guest.log "run-guest: no socket at $PWD/none: is vgpud running?"
}
