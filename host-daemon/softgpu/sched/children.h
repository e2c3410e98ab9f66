/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Children: what the kernel of a grid submits
 *
 * A grid that launches others, its children, is complete when they are. Its operations
 * are in *lanes*, streams of the grid that exist as long as they hold any: one for each
 * block and thread that uses its default stream, one for each stream that the kernel has
 * created, and one for each launch that waits for nothing. The tail is a lane, too, which
 * is held until the grid's own blocks and all other lanes are done; then the grid ends.
 *
 * What a child that is in the tail leaves in a tail of its own is put behind it, and the
 * child is complete: so kernels that launch their own successors may do so for ever.
 *
 * Operations of lanes have the ticket of the grid that the host launched: who waits for
 * that waits for all of them.
 */

#include "sched/sched.h"

enum sched_lane_kind {
	SCHED_LANE_BLOCK,
	SCHED_LANE_THREAD,
	SCHED_LANE_NAMED,
	SCHED_LANE_ALONE,
	SCHED_LANE_TAIL,
};

struct sched_lane {
	struct sched_stream stream; /* first */
	enum sched_lane_kind kind;
	uint64_t number; /* among those of the kind */
	TAILQ_ENTRY(sched_lane) link;
};

TAILQ_HEAD(sched_lanes, sched_lane);

struct sched_children {
	struct sched_op *parent;
	pthread_mutex_t owner_lock; /* the caller's, for what is its own */
	void (*release)(void *owned);

	/* the lock */
	struct sched_lanes lanes;
	uint32_t n_lanes;	 /* but for the tail */
	struct sched_lane *tail; /* one of them, or NULL */
	bool is_over;		 /* the grid's own blocks are done */

	/* The caller's, zeros at first. */
	uint64_t owned[];
};

/*
 * sched_children_get() - the children of a grid under way
 * @launch:	the launch that hooks get
 * @owned_size:	of what the caller keeps with them
 * @release:	called for that before it is freed, with the lock
 *
 * Return: the same for each caller, or NULL: no memory.
 */
struct sched_children *sched_children_get(const struct softgpu_launch *launch,
	size_t owned_size, void (*release)(void *owned));

/*
 * sched_children_submit() - add an operation to a lane, from a block of the grid
 * @template:	as in sched_submit()
 * @pending_max: operations of all lanes of the context
 *
 * Return: 0, the context's fault, out of memory, or SCHED_E_PENDING: there are as many.
 */
int sched_children_submit(struct sched_children *children, enum sched_lane_kind kind,
	uint64_t number, const struct sched_op *template, uint64_t pending_max);
#define SCHED_E_PENDING (-2)

/* With the lock, for streams and grids: */

/* Whether a lane must not begin its next operation yet. */
bool sched_children_hold(const struct sched_stream *lane);

/* The operation at the head of a lane is done. */
void sched_children_step(struct sched_stream *lane);

/* A lane is empty; it goes, and maybe the grid is complete with it. */
void sched_children_leave(struct sched_stream *lane);

/* The grid's own blocks are done. Return: whether that completes it. */
bool sched_children_end(struct sched_op *parent);
