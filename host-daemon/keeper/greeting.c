/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Greeting: the first message on a new connection
 *
 * QEMU reads an ivshmem greeting with blocking reads and its big lock held, and trusts
 * every number: so all of it is sent at once, right after accept, and nothing is sent on
 * that connection later. A number without a descriptor means "that peer left", and makes
 * QEMU free memory that it still uses.
 */

#include <endian.h>

#include "keeper/greeting.h"
#include "control/packet.h"
#include "vgpu/error.h"

/* Version of the ivshmem client-server protocol. */
#define IVSHMEM_PROTOCOL_VERSION 0
/* "Here is the shared memory". */
#define IVSHMEM_MEMORY (-1)

void greeting_ivshmem(struct greeting_number numbers[GREETING_IVSHMEM_N], uint16_t peer,
	int shm, const int *doorbells, const int *interrupts)
{
	unsigned int n = 0;

	numbers[n++] = (struct greeting_number){ IVSHMEM_PROTOCOL_VERSION, -1 };
	numbers[n++] = (struct greeting_number){ peer, -1 };
	numbers[n++] = (struct greeting_number){ IVSHMEM_MEMORY, shm };
	for (unsigned int i = 0; i < VGPU_IVSHMEM_VECTORS; i++)
		numbers[n++] =
			(struct greeting_number){ GREETING_HOST_PEER, doorbells[i] };
	for (unsigned int i = 0; i < VGPU_IVSHMEM_VECTORS; i++)
		numbers[n++] = (struct greeting_number){ peer, interrupts[i] };
}

int greeting_send_ivshmem(
	int fd, uint16_t peer, int shm, const int *doorbells, const int *interrupts)
{
	struct greeting_number numbers[GREETING_IVSHMEM_N];
	uint64_t wire;
	int r;

	greeting_ivshmem(numbers, peer, shm, doorbells, interrupts);
	for (unsigned int i = 0; i < GREETING_IVSHMEM_N; i++) {
		wire = htole64(numbers[i].number);
		r = packet_send(
			fd, &wire, sizeof(wire), &numbers[i].fd, numbers[i].fd >= 0);
		if (r)
			return r;
	}
	return 0;
}

int greeting_send_socket(int fd, int shm, const int *doorbells)
{
	const int fds[VGPU_SOCKET_FDS] = { shm, doorbells[0], doorbells[1] };
	const struct vgpu_socket_greeting greeting = {
		.magic = VGPU_SHM_MAGIC,
		.protocol_version = VGPU_PROTOCOL_VERSION,
		.n_fds = VGPU_SOCKET_FDS,
	};

	return packet_send(fd, &greeting, sizeof(greeting), fds, VGPU_SOCKET_FDS);
}
