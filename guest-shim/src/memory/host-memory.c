/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory
 */

#include <stdlib.h>

#include "memory/arena.h"
#include "memory/host-memory.h"
#include "wire/channel.h"
#include "wire/window.h"

struct shim_lock shim_host_memory_lock;

static struct shim_host_piece *pieces;

struct shim_host_piece *shim_host_piece_new(uint64_t size, int location)
{
	struct shim_host_piece *piece = calloc(1, sizeof(*piece));

	if (!piece)
		return NULL;
	piece->size = size;
	piece->location = location;
	piece->memory = shim_arena_alloc_extents(size);
	if (!piece->memory) {
		free(piece);
		return NULL;
	}
	return piece;
}

void shim_host_piece_add(struct shim_host_piece *piece, uint64_t handle)
{
	piece->handle = handle;
	piece->n_handles = 1;
	piece->next = pieces;
	if (pieces)
		pieces->previous = piece;
	pieces = piece;
}

void shim_host_piece_settle(struct shim_host_piece *piece)
{
	if (piece->n_handles || piece->n_mappings)
		return;
	if (piece->next)
		piece->next->previous = piece->previous;
	if (piece->previous)
		piece->previous->next = piece->next;
	else if (pieces == piece)
		pieces = piece->next;
	shim_arena_free(piece->memory);
	free(piece);
}

struct shim_host_piece *shim_host_piece_find(uint64_t handle)
{
	struct shim_host_piece *piece = pieces;

	while (piece && (!piece->n_handles || piece->handle != handle))
		piece = piece->next;
	return piece;
}

struct shim_host_piece *shim_host_piece_at(uint64_t memory)
{
	struct shim_host_piece *piece = pieces;

	while (piece && (uintptr_t)piece->memory != memory)
		piece = piece->next;
	return piece;
}

int shim_host_piece_map(
	const struct shim_host_piece *piece, uint64_t address, uint64_t size)
{
	return shim_window_map_at(shim_channel.transport.shm_fd, address,
		(uintptr_t)piece->memory - shim_channel.window.base, size);
}

void shim_host_piece_unmap(uint64_t address, uint64_t size)
{
	shim_window_unmap_at(address, size);
}
