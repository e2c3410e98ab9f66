/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Blocks: the memory of a pool, allocated and freed in the order of streams
 *
 * Device memory is added in segments and divided into blocks. A free block is pending
 * until the work in front of its cuMemFreeAsync is complete: then it is ready for any
 * stream, before that for the stream in which it was freed, whose later work waits anyway
 * (CUDA Driver API, Stream Ordered Memory Allocator). Free neighbours that are ready, or
 * pending in the same stream, are merged.
 *
 * Nothing here knows streams, or talks to the host. The caller holds a lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "process/order.h"

/* Sizes are rounded up to this, and addresses are multiples of it. */
#define SHIM_BLOCK_UNIT 512u

/* Blocks, in use or free, of one pool at once. */
#define SHIM_BLOCKS_MAX (1u << 20)

struct shim_blocks;

/* The place in a stream at which a block was freed. */
struct shim_free_point {
	uint64_t stream; /* a number that no other stream of the process ever has */
	uint64_t count;	 /* of the stream's operations, those in front */
	uint64_t order;	 /* grows with each block of the process that is freed */
	const void *context;
	uint64_t handle;
};

/* Returns: whether the work in front of a point is complete. */
typedef bool (*shim_blocks_past_fn)(const struct shim_free_point *point, void *data);

struct shim_blocks_counts {
	uint64_t reserved;
	uint64_t used;
	uint64_t reserved_high;
	uint64_t used_high;
	uint32_t n_blocks;
};

/* Returns: NULL without memory. */
struct shim_blocks *shim_blocks_new(void);
struct shim_blocks *shim_blocks_free(struct shim_blocks *blocks);

const struct shim_blocks_counts *shim_blocks_counts(const struct shim_blocks *blocks);

/* The high marks begin again with what there is now. */
void shim_blocks_reset_reserved_high(struct shim_blocks *blocks);
void shim_blocks_reset_used_high(struct shim_blocks *blocks);

/* Adds a segment. Return: false without memory. */
bool shim_blocks_add(struct shim_blocks *blocks, uint64_t base, uint64_t size);

/*
 * Allocates a block that is ready, or pending in the stream.
 *
 * @owner:	the context whose end frees the block
 *
 * Return: its address, or 0 where there is none.
 */
uint64_t shim_blocks_take(
	struct shim_blocks *blocks, uint64_t size, uint64_t stream, const void *owner);

/*
 * Allocates a block that is pending in another stream, if the work in front is complete
 * before the caller's stream goes on.
 *
 * Return: its address, or 0 where there is none.
 */
uint64_t shim_blocks_take_after(struct shim_blocks *blocks, uint64_t size,
	const struct shim_order *order, const void *owner);

/*
 * Allocates just those addresses, whatever is pending there.
 *
 * @address:	a multiple of SHIM_BLOCK_UNIT
 * @size:	is rounded up
 *
 * Return: whether they were free.
 */
bool shim_blocks_take_at(
	struct shim_blocks *blocks, uint64_t address, uint64_t size, const void *owner);

/*
 * Allocates a block that is pending in another stream of the same context, to which the
 * caller then lets its own wait.
 *
 * @may_wait:	whether it can wait for that stream
 * @pointp:	where the block was freed
 *
 * Return: its address, or 0 where there is none.
 */
uint64_t shim_blocks_borrow(struct shim_blocks *blocks, uint64_t size, const void *owner,
	shim_blocks_past_fn may_wait, void *data, struct shim_free_point *pointp);

/* Frees a block. @point: NULL if all work that uses it is complete. Return: false where
 * no block begins, or without memory. */
bool shim_blocks_give(struct shim_blocks *blocks, uint64_t address,
	const struct shim_free_point *point);

/* Frees all blocks of an owner, whose work is complete. */
void shim_blocks_give_owned(struct shim_blocks *blocks, const void *owner);

/* Makes pending blocks ready, where the work in front is complete. */
void shim_blocks_settle(
	struct shim_blocks *blocks, shim_blocks_past_fn is_past, void *data);

/* Takes out a segment all of which is ready, if at least so many bytes stay. Return:
 * false where there is none. */
bool shim_blocks_remove(
	struct shim_blocks *blocks, uint64_t keep, uint64_t *basep, uint64_t *sizep);

/* Calls a function for each segment. */
void shim_blocks_each_segment(const struct shim_blocks *blocks,
	void (*visit)(uint64_t base, uint64_t size, void *data), void *data);

/* Finds the block in use that contains an address. */
bool shim_blocks_find(const struct shim_blocks *blocks, uint64_t address, uint64_t *basep,
	uint64_t *sizep);
