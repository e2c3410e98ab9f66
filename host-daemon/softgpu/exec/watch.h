/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Watch: hazards in shared memory, and its bytes that nothing has written
 *
 * The *agents* of a cluster are the warps of its blocks, and for each warp another one
 * that does its asynchronous copies. Each agent counts in a clock of its own. An access
 * has the number of its agent's clock, and each agent knows up to which number of every
 * other agent's clock all accesses happen before what it does next. Barriers, mbarriers,
 * and accesses with a memory order to the same place pass that knowledge on; the agent
 * that passes it begins a new number. Two accesses of one byte by different agents, at
 * least one of which writes, are a hazard if neither is known to happen before the other,
 * unless both have a memory order or are atomic, or both write the same value. Lanes of
 * one warp count as one.
 *
 * A copy knows what its warp knows when it is issued; others learn of it at the mbarrier
 * that it signals, its warp also where it waits for its copies. All copies of a warp are
 * one agent: a wait for some of them counts as one for all.
 *
 * A byte remembers its last write and some of the reads since: of more reads some are
 * forgotten. So what is reported is a hazard, but not each hazard is reported.
 *
 * Clocks belong to a scratch, the bytes of a block to its room; both to the thread that
 * runs the cluster.
 */

#include "exec/bits.h"
#include "exec/warp.h"

#define WATCH_READS 3

/* Places of synchronising accesses, by a hash of the address. Those that meet pass on
 * more than they should, which hides hazards and makes none up. */
#define WATCH_PLACES 64

#define WATCH_CLOCK_BITS 27

/* A clock of 0: there is none. The agent is that of the launch in which it was. */
struct watch_access {
	uint64_t clock : WATCH_CLOCK_BITS;
	uint64_t code : 21;  /* instruction of the kernel */
	uint64_t agent : 10; /* see watch_agent() */
	uint64_t lane : 5;
	uint64_t is_ordered : 1;
};

struct watch_byte {
	struct watch_access write;
	struct watch_access reads[WATCH_READS];
};

/* What agents know: in each row a number for each agent. */
struct watch_clocks {
	uint32_t n_agents;
	uint32_t n_warps; /* of a block */
	uint32_t clock_max;
	size_t n_rows;
	uint32_t *seen; /* a row for each agent, then: */
	uint32_t *places;
	uint32_t
		*waiting; /* of those that have arrived, for each barrier of each block */
	uint32_t *opened; /* when it opened last */
};

struct watch {
	const struct softgpu_checks *checks; /* of the launch */
	struct watch_clocks *clocks;
	struct watch_byte *bytes; /* of shared memory; NULL: no races */
	uint8_t *unwritten;	  /* a bit for each byte; NULL: not kept */
	uint32_t n_bytes;	  /* that there is room for */
	uint32_t size;		  /* of what is watched in this launch */
};

enum watch_kind {
	WATCH_READ,
	WATCH_WRITE,
	WATCH_ATOMIC, /* reads and writes */
	WATCH_ORDERED_READ,
	WATCH_ORDERED_WRITE,
};

/* What an instruction does in the shared memory of a block, in one lane. */
struct watch_what {
	const struct block *block;
	enum watch_kind kind;
	uint32_t first, size;
	const uint8_t *value; /* that a store writes, or NULL */
	bool is_copy;	      /* it is asynchronous */
};

/* Returns: 0 or 2. For a launch whose kernel can be watched; *watchp may be an older
 * one, of any launch. */
int softgpu_watch_prepare(
	struct watch **watchp, const struct softgpu_launch *launch, uint32_t size);
struct watch *softgpu_watch_free(struct watch *watch);
size_t softgpu_watch_size(const struct watch *watch);

/* The same for clocks, of blocks with so many warps each. */
int softgpu_clocks_prepare(
	struct watch_clocks **clocksp, uint32_t n_blocks, uint32_t n_warps);
struct watch_clocks *softgpu_clocks_free(struct watch_clocks *clocks);
size_t softgpu_clocks_size(const struct watch_clocks *clocks);

/* The blocks of a cluster begin: all accesses so far happened before, and nothing has
 * been written. */
void softgpu_watch_begin(const struct cluster *cluster, struct watch_clocks *clocks);

/* For barriers: a warp is about to arrive; a barrier opens, the last of them with all
 * blocks of the cluster; and a warp that did not wait, or no longer does, is after it if
 * it has opened. */
void softgpu_watch_arrive(struct warp *w, unsigned int id);
void softgpu_watch_open(struct block *block, unsigned int id);
void softgpu_watch_open_cluster(const struct cluster *cluster);
void softgpu_watch_pass(struct warp *w, unsigned int id);

/* An access with a memory order to any address. */
void softgpu_watch_order(struct warp *w, uint64_t address, enum watch_kind kind);

/* The warp issues copies; they are done, and signal an mbarrier; it waits for them. */
void softgpu_watch_issue(struct warp *w);
void softgpu_watch_signal(struct warp *w, uint64_t address);
void softgpu_watch_collect(struct warp *w);

/* Returns: the block to whose shared memory a generic address leads, with the offset
 * there; NULL: it is not watched. */
const struct block *softgpu_watch_find(
	const struct block *block, uint64_t address, uint32_t *offp);

/* Something other than an access of a lane has written at a generic address, where there
 * is memory. */
void softgpu_watch_wrote(const struct block *block, uint64_t address, uint64_t size);

/*
 * An access of the lane's, whose bytes exist.
 *
 * Return: NULL, or which hazard it is, with the other access.
 */
const char *softgpu_watch_access(struct warp *w, const struct insn *ip, uint32_t lane,
	const struct watch_what *what, struct watch_access *otherp);

static inline uint32_t watch_agent(const struct warp *w, bool is_copy)
{
	const struct watch_clocks *clocks = w->block->watch->clocks;

	return (w->block->rank * clocks->n_warps + w->index) * 2 + is_copy;
}

/* The other way. */
static inline const struct warp *watch_warp(
	const struct cluster *cluster, const struct watch_clocks *clocks, uint32_t agent)
{
	uint32_t number = agent / 2;

	return &cluster->blocks[number / clocks->n_warps]
			->warps[number % clocks->n_warps];
}
