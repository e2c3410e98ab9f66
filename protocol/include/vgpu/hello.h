/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Hello: how a guest process opens a channel
 *
 * After the transport gave both sides the shared memory, a channel is opened by
 * the states of ring-layout.h. Part of it is the address window W: one range of
 * virtual addresses that guest process, worker and device agree on. The byte at
 * offset o of the shared memory is at W + o on both sides, followed by device memory in
 * [W + shm_size, W + size). Each side reserves the whole of W, so no pointer of the guest
 * program is ever equal to a device pointer.
 */

#include <assert.h>
#include <stdint.h>

#include "vgpu/ring-layout.h"

struct vgpu_window {
	uint64_t base;
	uint64_t size;
};

/*
 * Tried in this order. The first is free in ordinary processes; the second also in
 * builds with the address and thread sanitizers of gcc 12 and clang 14.
 */
#define VGPU_WINDOW_CANDIDATES                                                           \
	{                                                                                \
		{ 0x100000000000ull, 0x400000000000ull },	  /* 64 TiB */           \
			{ 0x550000000000ull, 0x005000000000ull }, /* 320 GiB */          \
	}

/* The least device memory that a window has to leave after the shared memory. */
#define VGPU_WINDOW_DEVICE_MIN (1ull << 30)

/* Checks base and size of a window the other side asks for. */
static inline int vgpu_window_is_sane(uint64_t base, uint64_t size, uint64_t shm_size)
{
	return base % VGPU_EXTENT_SIZE == 0 && size % VGPU_EXTENT_SIZE == 0 &&
	       base >= (1ull << 32) && base < (1ull << 47) && size < (1ull << 47) &&
	       base + size <= (1ull << 47) && size >= VGPU_WINDOW_DEVICE_MIN &&
	       shm_size <= size - VGPU_WINDOW_DEVICE_MIN;
}

/* First bytes on a connection of the socket transport, host to guest, together with
 * three descriptors: the shared memory, doorbell 0 and doorbell 1 (eventfds). */
struct vgpu_socket_greeting {
	uint64_t magic; /* VGPU_SHM_MAGIC */
	uint32_t protocol_version;
	uint32_t n_fds;
};

static_assert(sizeof(struct vgpu_socket_greeting) == 16, "fixed size");

#define VGPU_SOCKET_FDS 3

/* Environment variable that names a socket of vgpud and selects that transport. */
#define VGPU_SOCKET_ENV "VGPU_SOCKET"
