/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers: branches, barriers and what else moves the instruction pointer
 */

#include <time.h>

#include "exec/branch.h"

HANDLER(BRA)
{
	return branch(w, ip, mask);
}

/* Lanes may go to as many places as the table has; out of range is undefined: a fault. */
HANDLER(BRX)
{
	const struct softgpu_kernel *kernel = w->block->kernel;
	const uint32_t *index = REG(uint32_t, ip->a),
		       *targets = kernel->targets + ip->off;
	const struct insn *next = ip + 1;
	uint32_t rest = mask;

	while (rest) {
		uint32_t lane = (u32)__builtin_ctz(rest), same = 0, chosen = index[lane];

		if (chosen >= ip->e)
			return warp_fault(w, ip, SOFTGPU_ERROR_INVALID_PC, lane, chosen,
				"branch index outside of its table");
		EACH_SET_LANE(i, rest)
		if (index[i] == chosen)
			same |= lane_bit[i];
		rest &= ~same;
		if (same == w->active)
			next = kernel->code + targets[chosen];
		else
			softgpu_warp_push(w, kernel->code + targets[chosen], same);
	}
	if (next <= ip && !--w->budget) {
		w->event = EVENT_SPENT;
		w->at = next;
		return LEAVE;
	}
	if (w->active)
		return next;
	w->event = EVENT_ENDED;
	return LEAVE;
}

HANDLER(EXIT)
{
	return mask ? softgpu_warp_exit(w, ip, mask) : ip + 1;
}

HANDLER(TRAP)
{
	if (!mask)
		return ip + 1;
	return warp_fault(w, ip, SOFTGPU_ERROR_LAUNCH_FAILED, (u32)__builtin_ctz(mask), 0,
		"trap instruction");
}

HANDLER(NOP)
{
	return ip + 1;
}

/* A thread that sleeps waits for another one: let others run. */
HANDLER(NANOSLEEP)
{
	w->polled = true;
	w->budget = 1;
	return ip + 1;
}

static const struct insn *barrier(struct warp *w, const struct insn *ip, uint32_t mask,
	uint32_t expected, bool waits)
{
	const uint32_t *id = REG(uint32_t, ip->a);
	uint32_t lane;

	if (!mask)
		return ip + 1;
	lane = (u32)__builtin_ctz(mask);
	if (id[lane] >= BARRIERS)
		return warp_fault(w, ip, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION, lane, 0,
			"barrier number above 15");
	return softgpu_barrier_arrive(w, ip, mask, id[lane], expected, waits);
}

static const struct insn *barrier_counted(
	struct warp *w, const struct insn *ip, uint32_t mask, bool waits)
{
	uint32_t lane, count;

	if (!mask)
		return ip + 1;
	lane = (u32)__builtin_ctz(mask);
	count = REG(uint32_t, ip->b)[lane];
	if (!count || count % LANES || count > SOFTGPU_BLOCK_THREADS_MAX)
		return warp_fault(w, ip, SOFTGPU_ERROR_ILLEGAL_INSTRUCTION, lane, 0,
			"barrier thread count is not a number of warps");
	return barrier(w, ip, mask, count, waits);
}

HANDLER(BAR_SYNC)
{
	return barrier(w, ip, mask, 0, true);
}

HANDLER(BAR_SYNC_N)
{
	return barrier_counted(w, ip, mask, true);
}

HANDLER(BAR_ARRIVE)
{
	return barrier_counted(w, ip, mask, false);
}

/* The predicate is counted at arrival; ip->reserved says what is made of the counts. */
#define HANDLER_BAR_RED(_name)                                                           \
	HANDLER(_name)                                                                   \
	{                                                                                \
		uint32_t lane;                                                           \
                                                                                         \
		if (!mask)                                                               \
			return ip + 1;                                                   \
		lane = (u32)__builtin_ctz(mask);                                         \
		if (REG(uint32_t, ip->b)[lane])                                          \
			return barrier_counted(w, ip, mask, true);                       \
		return barrier(w, ip, mask, 0, true);                                    \
	}

HANDLER_BAR_RED(BAR_RED_AND)
HANDLER_BAR_RED(BAR_RED_OR)
HANDLER_BAR_RED(BAR_RED_POPC)

/*
 * Clusters
 */

HANDLER(CLUSTER_ARRIVE)
{
	return mask ? softgpu_cluster_arrive(w, ip, mask) : ip + 1;
}

HANDLER(CLUSTER_WAIT)
{
	return mask ? softgpu_cluster_wait(w, ip, mask) : ip + 1;
}

/*
 * Returns: the place @off of the range of shared addresses in the block with a rank. One
 * that does not exist is no fault before an access: compilers compute addresses ahead.
 */
static uint64_t map_shared(const struct block *block, uint64_t off, uint32_t rank)
{
	uint32_t number = rank + 1;

	if (off >= SOFTGPU_GENERIC_RANGE)
		return off;
	if (rank >= block->cluster->n_blocks)
		number = SOFTGPU_CLUSTER_NOWHERE;
	else if (rank == block->rank)
		number = 0;
	return off % SOFTGPU_CLUSTER_STRIDE + (uint64_t)number * SOFTGPU_CLUSTER_STRIDE;
}

/* Returns: the rank of the block; the own one for an address that is in none. */
static uint32_t rank_of(const struct block *block, uint64_t off)
{
	uint64_t number = off / SOFTGPU_CLUSTER_STRIDE;

	return number && number <= block->cluster->n_blocks ? (uint32_t)number - 1
							    : block->rank;
}

/* imm: where the addresses of shared memory begin */
#define HANDLER_MAPA(_width)                                                             \
	HANDLER(MAPA_##_width)                                                           \
	{                                                                                \
		const u##_width *address = REG(u##_width, ip->a);                        \
		const uint32_t *rank = REG(uint32_t, ip->b);                             \
		u##_width *d = REG(u##_width, ip->d), low = (u##_width)ip->imm;          \
                                                                                         \
		EACH_SET_LANE(i, mask)                                                   \
		d[i] = low + (u##_width)map_shared(                                      \
				     w->block, (u##_width)(address[i] - low), rank[i]);  \
		return ip + 1;                                                           \
	}                                                                                \
                                                                                         \
	HANDLER(RANK_##_width)                                                           \
	{                                                                                \
		const u##_width *address = REG(u##_width, ip->a);                        \
		u##_width low = (u##_width)ip->imm;                                      \
		uint32_t *d = REG(uint32_t, ip->d);                                      \
                                                                                         \
		EACH_SET_LANE(i, mask)                                                   \
		d[i] = rank_of(w->block, (u##_width)(address[i] - low));                 \
		return ip + 1;                                                           \
	}

HANDLER_MAPA(32)
HANDLER_MAPA(64)

HANDLER(IS_CLUSTER)
{
	pred_write(w, ip->d, mask, w->block->launch->cluster[0] ? mask : 0);
	return ip + 1;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

HANDLER(READ_CLOCK)
{
	uint64_t *d = REG(uint64_t, ip->d), now = now_ns(CLOCK_MONOTONIC);

	w->polled = true; /* a loop that waits for the clock should let others run */
	EACH_SET_LANE(i, mask)
	d[i] = now;
	return ip + 1;
}

HANDLER(READ_TIMER)
{
	uint64_t *d = REG(uint64_t, ip->d), now = now_ns(CLOCK_REALTIME);

	w->polled = true;
	EACH_SET_LANE(i, mask)
	d[i] = now;
	return ip + 1;
}
