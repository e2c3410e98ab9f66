/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The address window W of this process, see vgpu/hello.h
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/hello.h"

/* Set to a number, names the only candidate that is tried. */
#define SHIM_WINDOW_ENV "VGPU_WINDOW"

struct shim_window {
	uint64_t base;
	uint64_t size; /* 0: none is reserved */
	uint64_t shm_size;
};

/* How many candidates there are. */
unsigned int shim_window_n_candidates(void);

/*
 * Reserves candidate number `index`, without access. If the address-space limit of the
 * process forbids all of it, a smaller window at the same place is reserved, and a line
 * is logged.
 *
 * Return: 0, -EBUSY if the addresses are taken or the candidate is excluded, -ENOMEM if
 * even the smallest window exceeds the limit.
 */
int shim_window_reserve(
	struct shim_window *window, unsigned int index, uint64_t shm_size);
void shim_window_release(struct shim_window *window);

/* Maps [offset, offset + size) of the shared memory at its place in the window. */
int shim_window_map(
	const struct shim_window *window, int shm_fd, uint64_t offset, uint64_t size);

/*
 * Maps [offset, offset + size) of the shared memory at another address of the window as
 * well, without access for the program; sets its access (PROT_READ, PROT_WRITE); and
 * reserves these addresses again.
 *
 * Return: 0 or -errno.
 */
int shim_window_map_at(int shm_fd, uint64_t address, uint64_t offset, uint64_t size);
int shim_window_protect(uint64_t address, uint64_t size, int protection);
void shim_window_unmap_at(uint64_t address, uint64_t size);

static inline void *shim_window_pointer(const struct shim_window *window, uint64_t offset)
{
	return (void *)(uintptr_t)(window->base + offset);
}

/* Returns: whether the address is in the window's device memory. */
static inline bool shim_window_is_device(
	const struct shim_window *window, uint64_t address)
{
	return address - window->base >= window->shm_size &&
	       address - window->base < window->size;
}

/* Returns: whether the address is in shared memory, that is, pinned host memory. */
static inline bool shim_window_is_arena(
	const struct shim_window *window, uint64_t address)
{
	return address - window->base < window->shm_size;
}
