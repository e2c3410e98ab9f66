/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Host memory: pieces of the arena that a program maps at reserved addresses
 *
 * The worker counts handles and mappings of each piece (worker/memory/virtual.c), and so
 * does this process, to know when the arena has the piece again. Both agree because calls
 * that create, release, retain and map it are made under one lock, with their messages.
 * Unmapping waits for work, and so is noted afterwards: a piece is given back too late at
 * worst, unless a program uses what it unmaps.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/lock.h"

/* Held during calls to the host. */
extern struct shim_lock shim_host_memory_lock;

struct shim_host_piece {
	struct shim_host_piece *previous, *next;
	void *memory; /* in the arena */
	uint64_t size;
	int location; /* as the program called it: process/location.h */
	uint64_t handle;
	uint32_t n_handles;
	uint32_t n_mappings;
};

/* Returns: a piece without handle, which is in no list yet; NULL without memory. */
struct shim_host_piece *shim_host_piece_new(uint64_t size, int location);

/* Adds a piece that the host knows by its first handle. */
void shim_host_piece_add(struct shim_host_piece *piece, uint64_t handle);

/* Gives it back if neither handle nor mapping is left. */
void shim_host_piece_settle(struct shim_host_piece *piece);

/* Returns: the piece with a handle, or at that place in the arena; NULL if there is none.
 */
struct shim_host_piece *shim_host_piece_find(uint64_t handle);
struct shim_host_piece *shim_host_piece_at(uint64_t memory);

/*
 * Maps the first pages of a piece at an address of the window, without access for the
 * program, and unmaps them.
 *
 * Return: 0 or -errno.
 */
int shim_host_piece_map(
	const struct shim_host_piece *piece, uint64_t address, uint64_t size);
void shim_host_piece_unmap(uint64_t address, uint64_t size);
