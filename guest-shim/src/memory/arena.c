/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena: a first-fit heap whose books are kept outside of it
 *
 * One list of pieces, free and taken, in the order of addresses; neighbours that are
 * free and adjoin are one piece. No allocation crosses the end of a run, because runs
 * that adjoin by chance are registered with the driver one by one.
 *
 * Extents are granted empty. Each piece knows how much of its beginning may have been
 * written since, so that memory that was never used is not cleared again.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/checked.h"
#include "vgpu/error.h"
#include "vgpu/g-driver.pb-c.h"
#include "vgpu/log.h"

#include "memory/arena.h"
#include "memory/share.h"
#include "memory/staging.h"
#include "process/call.h"
#include "wire/lock.h"
#include "wire/reason.h"

#define PIECE_ALIGN 4096ull
/* Extents asked for at once, where fewer would do: 64 MiB. */
#define GROW_EXTENTS_MIN 32u

struct piece {
	uint8_t *start;
	uint64_t size;
	uint64_t used_size; /* from its start: of those bytes alone, some may not be 0 */
	uint32_t run;
	bool is_taken;
	struct piece *previous;
	struct piece *next;
};

static struct {
	struct shim_lock lock;
	struct piece *pieces;
	uint32_t n_runs;
	/* Held by the one thread that asks the host for more. */
	struct shim_lock grow_lock;
} arena;

static struct piece *piece_new(uint8_t *start, uint64_t size, uint32_t run)
{
	struct piece *piece = calloc(1, sizeof(*piece));

	if (piece)
		*piece = (struct piece){ .start = start, .size = size, .run = run };
	return piece;
}

static void link_after(struct piece *piece, struct piece *previous)
{
	struct piece **headp = previous ? &previous->next : &arena.pieces;

	piece->previous = previous;
	piece->next = *headp;
	if (piece->next)
		piece->next->previous = piece;
	*headp = piece;
}

static void merge_with_next(struct piece *piece)
{
	struct piece *next = piece->next;

	if (next->used_size)
		piece->used_size = piece->size + next->used_size;
	piece->size += next->size;
	piece->next = next->next;
	if (next->next)
		next->next->previous = piece;
	free(next);
}

static bool can_merge(const struct piece *a, const struct piece *b)
{
	return a && b && !a->is_taken && !b->is_taken && a->run == b->run;
}

/* Adds a run of extents. Return: false without memory. */
static bool add_run(uint32_t first, uint32_t n, uint64_t reserved)
{
	uint8_t *start = shim_channel_extent(&shim_channel, first);
	struct piece *piece, *previous = NULL;

	piece = piece_new(start + reserved, (uint64_t)n * VGPU_EXTENT_SIZE - reserved,
		arena.n_runs++);
	if (!piece)
		return false;
	shim_lock(&arena.lock);
	for (struct piece *p = arena.pieces; p && p->start < piece->start; p = p->next)
		previous = p;
	link_after(piece, previous);
	shim_unlock(&arena.lock);
	return true;
}

int shim_arena_setup(void)
{
	while (arena.pieces) {
		struct piece *piece = arena.pieces;

		arena.pieces = piece->next;
		free(piece);
	}
	arena.n_runs = 0;
	if ((uint64_t)shim_channel.n_extents * VGPU_EXTENT_SIZE <= SHIM_STAGING_SIZE)
		return vgpu_error_origin(-EBADMSG);
	shim_share_setup();
	shim_staging_setup(shim_channel_extent(&shim_channel, shim_channel.first_extent));
	return add_run(shim_channel.first_extent, shim_channel.n_extents,
		       SHIM_STAGING_SIZE)
		       ? 0
		       : vgpu_error_origin(-ENOMEM);
}

/* Makes the piece that long, and another one of what follows. */
static bool cut(struct piece *piece, uint64_t size)
{
	struct piece *rest =
		piece_new(piece->start + size, piece->size - size, piece->run);

	if (!rest)
		return false;
	piece->size = size;
	if (piece->used_size > size) {
		rest->used_size = piece->used_size - size;
		piece->used_size = size;
	}
	link_after(rest, piece);
	return true;
}

static uint64_t size_before(const struct piece *piece, uint64_t alignment)
{
	return -(uint64_t)(uintptr_t)piece->start & (alignment - 1);
}

/* Takes the first free piece that is large enough; what is too much stays free. */
static void *take(uint64_t size, uint64_t alignment, uint64_t *used_sizep)
{
	struct piece *piece;
	uint64_t before = 0;

	SHIM_LOCKED(&arena.lock);
	for (piece = arena.pieces; piece; piece = piece->next) {
		before = size_before(piece, alignment);
		if (!piece->is_taken && piece->size >= before &&
			piece->size - before >= size)
			break;
	}
	if (!piece || (before && !cut(piece, before)))
		return NULL;
	if (before)
		piece = piece->next;
	if (piece->size > size && !cut(piece, size))
		return NULL;
	piece->is_taken = true;
	*used_sizep = piece->used_size;
	return piece->start;
}

static bool grow(uint64_t size)
{
	Vgpu__VgpuArenaGrowRequest request = VGPU__VGPU_ARENA_GROW_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuArenaGrow);
	uint64_t n = (size + VGPU_EXTENT_SIZE - 1) / VGPU_EXTENT_SIZE;
	const Vgpu__VgpuArenaGrowReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	if (n > shim_channel.transport.header->n_extents)
		return false;
	request.n_extents = n > GROW_EXTENTS_MIN ? (uint32_t)n : GROW_EXTENTS_MIN;
	result = shim_call_sync(
		&call, &request.base, &vgpu__vgpu_arena_grow_reply__descriptor, &message);
	if (result != CUDA_SUCCESS && n < request.n_extents) {
		request.n_extents = (uint32_t)n;
		result = shim_call_sync(&call, &request.base,
			&vgpu__vgpu_arena_grow_reply__descriptor, &message);
	}
	reply = (const Vgpu__VgpuArenaGrowReply *)message;
	return result == CUDA_SUCCESS &&
	       !shim_channel_map_extents(
		       &shim_channel, reply->first_extent, reply->n_granted) &&
	       add_run(reply->first_extent, reply->n_granted, 0);
}

/* Another thread may have made room meanwhile. */
static void *take_more(uint64_t size, uint64_t alignment, uint64_t *used_sizep)
{
	void *pointer;
	SHIM_LOCKED(&arena.grow_lock);

	pointer = take(size, alignment, used_sizep);
	if (!pointer && grow(size))
		pointer = take(size, alignment, used_sizep);
	return pointer;
}

static void *alloc(uint64_t size, uint64_t alignment, uint64_t *used_sizep)
{
	void *pointer;

	if (!size || !vgpu_align_u64(size, PIECE_ALIGN, &size))
		return NULL;
	pointer = take(size, alignment, used_sizep);
	if (pointer)
		return pointer;
	pointer = take_more(size, alignment, used_sizep);
	if (!pointer)
		shim_reason_tell(SHIM_REASON_ARENA,
			"no %llu KiB of shared memory in a row are left for pinned "
			"memory, "
			"code and copies: free some, or raise size = of this virtual "
			"machine in vgpud.conf on the host",
			(unsigned long long)size >> 10);
	return pointer;
}

void *shim_arena_alloc(uint64_t size)
{
	uint64_t used_size;

	return alloc(size, PIECE_ALIGN, &used_size);
}

static void *alloc_zeroed(uint64_t size, uint64_t alignment)
{
	uint64_t used_size;
	void *pointer = alloc(size, alignment, &used_size);

	if (pointer)
		memset(pointer, 0, used_size);
	return pointer;
}

void *shim_arena_alloc_zeroed(uint64_t size)
{
	return alloc_zeroed(size, PIECE_ALIGN);
}

void *shim_arena_alloc_extents(uint64_t size)
{
	return alloc_zeroed(size, VGPU_EXTENT_SIZE);
}

void shim_arena_free(void *pointer)
{
	struct piece *piece;

	SHIM_LOCKED(&arena.lock);
	for (piece = arena.pieces; piece; piece = piece->next)
		if (piece->start == pointer && piece->is_taken)
			break;
	if (!piece)
		return;
	piece->is_taken = false;
	piece->used_size = piece->size;
	if (can_merge(piece, piece->next))
		merge_with_next(piece);
	if (can_merge(piece->previous, piece))
		merge_with_next(piece->previous);
}
