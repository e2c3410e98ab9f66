/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes the size of the frame that the host reads next, endlessly
 *
 * usage: flip-size FD AREA: FD is the shared memory, AREA the channel's offset in it. It
 * is as fast as the processor can be, because its target is a host that reads a size,
 * checks it and reads it again. Its parent kills it.
 */

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "vgpu/ring-layout.h"

/* In the highest byte of a size: no frame is so large, and no buffer. */
#define FLIPPED 0x40

/* Changes at one place before looking where the host is. */
#define N_CHANGES 64

int main(int argc, char **argv)
{
	const uint64_t *head;
	struct stat st;
	uint8_t *area;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc != 3)
		return 2;
	fd = atoi(argv[1]);
	if (fstat(fd, &st) < 0)
		return 1;
	area = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (area == MAP_FAILED)
		return 1;
	area += strtoull(argv[2], NULL, 10);
	head = (const uint64_t *)(area + 64);
	for (;;) {
		uint64_t at = __atomic_load_n(head, __ATOMIC_RELAXED) % VGPU_RING_SIZE;
		uint8_t *byte = area + VGPU_RING_OFF + at + 3;

		for (int i = 0; i < N_CHANGES; i++) {
			__atomic_store_n(byte, FLIPPED, __ATOMIC_RELAXED);
			__atomic_store_n(byte, 0, __ATOMIC_RELAXED);
		}
	}
}
