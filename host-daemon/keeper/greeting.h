/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Greeting: the first message on a new connection
 */

#include <stdint.h>

#include "vgpu/hello.h"
#include "vgpu/ring-layout.h"

/* Peer number of the host; VMs have 1 and up. */
#define GREETING_HOST_PEER 0
#define GREETING_PEER_MAX 65535

/* Numbers of a whole greeting: version, own ID, memory, eventfds each way. */
#define GREETING_IVSHMEM_N (3 + 2 * VGPU_IVSHMEM_VECTORS)

struct greeting_number {
	int64_t number; /* on the wire: 8 bytes, little-endian */
	int fd;		/* sent with it, or -1 */
};

/*
 * Fills in the messages of an ivshmem server to QEMU.
 *
 * @doorbells:	eventfds the guest rings
 * @interrupts:	eventfds that raise a vector in the guest
 */
void greeting_ivshmem(struct greeting_number numbers[GREETING_IVSHMEM_N], uint16_t peer,
	int shm, const int *doorbells, const int *interrupts);

/*
 * Sends the greeting, one packet per number. After an error the connection must be
 * closed: QEMU would wait for the rest.
 *
 * Return: 0, PACKET_E_EOF, PACKET_E_AGAIN or -errno.
 */
int greeting_send_ivshmem(
	int fd, uint16_t peer, int shm, const int *doorbells, const int *interrupts);

/* Greets a guest process on this machine. Return: as above. */
int greeting_send_socket(int fd, int shm, const int *doorbells);
