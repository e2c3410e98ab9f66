/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children: what the kernel of a grid submits
 */

#include <stdlib.h>

#include "sched/children.h"

struct sched_children *sched_children_get(const struct softgpu_launch *launch,
	size_t owned_size, void (*release)(void *owned))
{
	struct sched_grid *grid = sched_grid_of(launch);
	struct sched_op *parent = grid->task.op;
	struct sched *sched = parent->stream->context->sched;
	struct sched_children *children;

	sched_lock(sched);
	children = grid->children;
	if (!children) {
		children = calloc(1, sizeof(*children) + owned_size);
		if (children) {
			children->parent = parent;
			children->release = release;
			pthread_mutex_init(&children->owner_lock, NULL);
			TAILQ_INIT(&children->lanes);
		}
		grid->children = children;
	}
	sched_unlock(sched);
	return children;
}

static void children_free(struct sched_children *children)
{
	children->release(children->owned);
	pthread_mutex_destroy(&children->owner_lock);
	free(children);
}

/*
 * Lanes
 */

static struct sched_lane *lane_find(
	const struct sched_children *children, enum sched_lane_kind kind, uint64_t number)
{
	struct sched_lane *lane;

	if (kind == SCHED_LANE_TAIL)
		return children->tail;
	if (kind == SCHED_LANE_ALONE)
		return NULL;
	TAILQ_FOREACH(lane, &children->lanes, link)
		if (lane->kind == kind && lane->number == number)
			return lane;
	return NULL;
}

static struct sched_lane *lane_new(
	struct sched_children *children, enum sched_lane_kind kind, uint64_t number)
{
	const struct sched_stream *of = children->parent->stream;
	struct sched_lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return NULL;
	lane->kind = kind;
	lane->number = number;
	lane->stream.context = of->context;
	lane->stream.is_confined = of->is_confined;
	lane->stream.sms = of->sms;
	lane->stream.children = children;
	/* Not the stream's: the launch may have another one. */
	lane->stream.priority =
		(int)children->parent->grid.level + SCHED_PRIORITY_GREATEST;
	STAILQ_INIT(&lane->stream.ops);
	pthread_cond_init(&lane->stream.done, NULL);
	TAILQ_INSERT_HEAD(&children->lanes, lane, link);
	TAILQ_INSERT_TAIL(&of->context->lanes, &lane->stream, link);
	if (kind == SCHED_LANE_TAIL)
		children->tail = lane;
	else
		children->n_lanes++;
	return lane;
}

static void lane_free(struct sched_lane *lane)
{
	struct sched_children *children = lane->stream.children;
	struct sched_context *context = lane->stream.context;

	TAILQ_REMOVE(&children->lanes, lane, link);
	TAILQ_REMOVE(&context->lanes, &lane->stream, link);
	if (lane->stream.is_kicked)
		TAILQ_REMOVE(&context->sched->kicked, &lane->stream, kick_link);
	if (lane->kind == SCHED_LANE_TAIL)
		children->tail = NULL;
	else
		children->n_lanes--;
	pthread_cond_destroy(&lane->stream.done);
	free(lane);
}

int sched_children_submit(struct sched_children *children, enum sched_lane_kind kind,
	uint64_t number, const struct sched_op *template, uint64_t pending_max)
{
	struct sched_context *context = children->parent->stream->context;
	struct sched *sched = context->sched;
	struct sched_lane *lane = NULL;
	struct sched_op *op = NULL;
	int r;

	sched_lock(sched);
	r = context->fault;
	if (!r && context->n_pending >= pending_max)
		r = SCHED_E_PENDING;
	if (!r && sched_staff(sched, template->kind))
		r = SOFTGPU_ERROR_OUT_OF_MEMORY;
	if (!r)
		lane = lane_find(children, kind, number);
	if (!r && !lane)
		lane = lane_new(children, kind, number);
	if (lane)
		op = sched_op_new(sched, template);
	if (op) {
		op->stream = &lane->stream;
		op->ticket = children->parent->ticket;
		STAILQ_INSERT_TAIL(&lane->stream.ops, op, next);
		context->n_pending++;
	} else {
		sched_op_discard(template);
		r = r ? r : SOFTGPU_ERROR_OUT_OF_MEMORY;
	}
	/* A new one that has remained empty goes by this, too. */
	if (lane)
		sched_kick(&lane->stream);
	sched_unlock(sched);
	return r;
}

bool sched_children_hold(const struct sched_stream *stream)
{
	const struct sched_lane *lane = (const struct sched_lane *)stream;
	const struct sched_children *children = stream->children;

	return lane->kind == SCHED_LANE_TAIL && (!children->is_over || children->n_lanes);
}

void sched_children_step(struct sched_stream *lane)
{
	struct sched_op *op = STAILQ_FIRST(&lane->ops);

	STAILQ_REMOVE_HEAD(&lane->ops, next);
	lane->context->n_pending--;
	sched_op_free(lane->context->sched, op);
}

/*
 * The end of a grid
 */

/* What is in the tail of a grid that is in the tail of another one follows it there. */
static void pass_tail_on(struct sched_children *children)
{
	struct sched_op *parent = children->parent, *after = parent, *op;
	struct sched_lane *from = children->tail,
			  *to = (struct sched_lane *)parent->stream;

	if (!from || !to->stream.children || to->kind != SCHED_LANE_TAIL)
		return;
	while ((op = STAILQ_FIRST(&from->stream.ops))) {
		STAILQ_REMOVE_HEAD(&from->stream.ops, next);
		op->stream = &to->stream;
		STAILQ_INSERT_AFTER(&to->stream.ops, after, op, next);
		after = op;
	}
	lane_free(from);
}

/* Return: whether nothing is left, so that the grid is complete. */
static bool settle(struct sched_children *children)
{
	if (!children->is_over || children->n_lanes)
		return false;
	pass_tail_on(children);
	if (children->tail) {
		sched_kick(&children->tail->stream);
		return false;
	}
	children->parent->grid.children = NULL;
	children_free(children);
	return true;
}

void sched_children_leave(struct sched_stream *stream)
{
	struct sched_children *children = stream->children;
	struct sched_op *parent = children->parent;

	lane_free((struct sched_lane *)stream);
	if (!settle(children))
		return;
	/* Its stream goes on when it is looked at: nothing recurses. */
	parent->grid.is_over = true;
	parent->stream->state = SCHED_STREAM_IDLE;
	sched_kick(parent->stream);
}

bool sched_children_end(struct sched_op *parent)
{
	struct sched_children *children = parent->grid.children;

	if (!children)
		return true;
	children->is_over = true;
	return settle(children);
}
