/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: queues of operations, and how far each one can go
 *
 * stream_advance() is the only place that decides what happens to the operation at
 * the head of a stream. It runs when the stream has been kicked, and leaves the
 * stream in the state that says what it waits for.
 */

#include <errno.h>
#include <stdlib.h>

#include "vgpu/error.h"
#include "vgpu/wake.h"

#include "exec/bits.h"
#include "sched/children.h"
#include "sched/graph.h"
#include "sched/sched.h"

static void stream_init(struct sched_stream *stream, struct sched_context *context)
{
	stream->context = context;
	stream->legacy = &context->legacy;
	STAILQ_INIT(&stream->ops);
	pthread_cond_init(&stream->done, NULL);
	stream->id = context->sched->next_stream_id++;
	TAILQ_INSERT_TAIL(&context->streams, stream, link);
}

int sched_stream_new(struct sched_stream **streamp, struct sched_context *context,
	bool is_blocking, int priority)
{
	struct sched_stream *stream = calloc(1, sizeof(*stream));

	bool is_open;

	if (!stream)
		return vgpu_error_origin(-ENOMEM);
	stream->is_blocking = is_blocking;
	stream->priority = sched_priority_clamp(priority);
	stream->n_refs = 2;
	sched_lock(context->sched);
	is_open = !context->legacy.is_destroyed;
	if (is_open)
		stream_init(stream, context);
	sched_unlock(context->sched);
	if (!is_open) {
		free(stream);
		return -ECANCELED;
	}
	*streamp = stream;
	return 0;
}

void sched_stream_confine(struct sched_stream *stream, const struct sched_sms *sms,
	struct sched_stream *legacy)
{
	struct sched *sched = stream->context->sched;

	sched_lock(sched);
	stream->is_confined = true;
	stream->sms = *sms;
	stream->is_legacy = !legacy;
	stream->legacy = legacy;
	if (legacy)
		__atomic_fetch_add(&legacy->n_refs, 1, __ATOMIC_RELAXED);
	sched_unlock(sched);
}

void sched_stream_set_priority(struct sched_stream *stream, int priority)
{
	__atomic_store_n(
		&stream->priority, sched_priority_clamp(priority), __ATOMIC_RELAXED);
}

int sched_stream_priority(const struct sched_stream *stream)
{
	return __atomic_load_n(&stream->priority, __ATOMIC_RELAXED);
}

void sched_stream_end(struct sched_stream *stream)
{
	struct sched *sched = stream->context->sched;

	sched_lock(sched);
	/* With its context it may have gone already. */
	if (!stream->is_destroyed) {
		stream->is_destroyed = true;
		/* A thread that waits for room is released with the fault. */
		if (stream->n_waiters)
			vgpu_wake_all(&stream->done);
		sched_kick(stream);
	}
	sched_unlock(sched);
}

void sched_stream_unref(struct sched_stream *stream)
{
	struct sched_stream *legacy = stream->is_confined ? stream->legacy : NULL;

	if (__atomic_sub_fetch(&stream->n_refs, 1, __ATOMIC_ACQ_REL))
		return;
	pthread_cond_destroy(&stream->done);
	free(stream);
	/* Which has none itself. */
	if (legacy)
		sched_stream_unref(legacy);
}

void sched_stream_free(struct sched_stream *stream)
{
	sched_stream_end(stream);
	sched_stream_unref(stream);
}

/* Leaves its context, empty. */
static void stream_leave_context(struct sched_stream *stream)
{
	TAILQ_REMOVE(&stream->context->streams, stream, link);
	/* Its last operation may have kicked it: the end of the first of two launches of
	 * one graph does. */
	if (stream->is_kicked)
		TAILQ_REMOVE(&stream->context->sched->kicked, stream, kick_link);
	stream->is_kicked = false;
	if (stream->context->n_waiters)
		vgpu_wake_all(&stream->context->done);
	if (stream != &stream->context->legacy)
		sched_stream_unref(stream);
}

void sched_kick(struct sched_stream *stream)
{
	if (stream->is_kicked)
		return;
	stream->is_kicked = true;
	TAILQ_INSERT_TAIL(&stream->context->sched->kicked, stream, kick_link);
}

/* Takes a stream out of the list that its state put it in. */
static void stream_leave(struct sched_stream *stream)
{
	struct sched *sched = stream->context->sched;

	if (stream->state == SCHED_STREAM_WAITING)
		TAILQ_REMOVE(&stream->waits_for->waiters, stream, wait_link);
	else if (stream->state == SCHED_STREAM_POLLING)
		TAILQ_REMOVE(&sched->polling, stream, wait_link);
	stream->waits_for = NULL;
	stream->state = SCHED_STREAM_IDLE;
}

static void stream_enter(
	struct sched_stream *stream, enum sched_state state, struct sched_streams *list)
{
	stream->state = state;
	TAILQ_INSERT_TAIL(list, stream, wait_link);
}

/* The legacy rule: whether the other side has an operation with a lower ticket. Lanes of
 * a grid have another rule. */
static bool stream_is_held(const struct sched_stream *stream, uint64_t ticket)
{
	struct sched_context *context = stream->context;
	const struct sched_stream *other;
	const struct sched_op *op;

	if (stream->children)
		return sched_children_hold(stream);
	if (!stream->is_blocking)
		return false;
	if (!stream->is_legacy) {
		op = STAILQ_FIRST(&stream->legacy->ops);
		return op && op->ticket < ticket;
	}
	TAILQ_FOREACH(other, &context->streams, link) {
		op = STAILQ_FIRST(&other->ops);
		if (other->is_blocking && other->legacy == stream && op &&
			op->ticket < ticket)
			return true;
	}
	return false;
}

static void stream_kick_held(struct sched_stream *stream)
{
	struct sched_context *context = stream->context;
	struct sched_stream *other;

	if (!stream->is_blocking)
		return;
	if (!stream->is_legacy) {
		if (stream->legacy->state == SCHED_STREAM_HELD)
			sched_kick(stream->legacy);
		return;
	}
	TAILQ_FOREACH(other, &context->streams, link)
		if (other->state == SCHED_STREAM_HELD)
			sched_kick(other);
}

/* Removes the operation at the head; its work is done or discarded. */
static void stream_pop(struct sched_stream *stream)
{
	struct sched_context *context = stream->context;
	struct sched_op *op = STAILQ_FIRST(&stream->ops);

	if (stream->graph) {
		sched_graph_step(stream);
		return;
	}
	if (stream->children) {
		sched_children_step(stream);
		return;
	}
	STAILQ_REMOVE_HEAD(&stream->ops, next);
	sched_op_begun(context->sched, op);
	sched_op_free(context->sched, op);
	stream->n_ops--;
	stream->context->sched->n_ops--;
	stream->n_completed++;
	stream_kick_held(stream);
	if (stream->n_waiters)
		vgpu_wake_all(&stream->done);
	if (context->n_waiters)
		vgpu_wake_all(&context->done);
}

void sched_stream_complete(struct sched_stream *stream)
{
	stream->state = SCHED_STREAM_IDLE;
	stream_pop(stream);
	sched_kick(stream);
}

/*
 * Begins the operation at the head of a stream that can run. Returns: whether it is
 * already complete.
 */
static bool stream_begin(struct sched_stream *stream, struct sched_op *op)
{
	struct sched *sched = stream->context->sched;

	switch (op->kind) {
	case SCHED_NOTHING:
	case SCHED_MARK:
		return true;
	case SCHED_WAIT:
		if (op->mark->is_done)
			return true;
		stream->waits_for = op->mark;
		stream_enter(stream, SCHED_STREAM_WAITING, &op->mark->waiters);
		return false;
	case SCHED_WRITE:
		sched_word_write(&op->word);
		softgpu_space_wrote(&sched->watched, op->word.address, op->word.size);
		return true;
	case SCHED_WAIT_VALUE:
		if (sched_word_is_met(&op->word))
			return true;
		stream_enter(stream, SCHED_STREAM_POLLING, &sched->polling);
		return false;
	case SCHED_HOST:
		stream_enter(stream, SCHED_STREAM_QUEUED, &sched->hosts);
		return false;
	case SCHED_LAUNCH:
		if (op->grid.is_over)
			return true;
		stream->state = SCHED_STREAM_RUNNING;
		sched_grid_begin(sched, op);
		return false;
	case SCHED_GRAPH:
		if (op->run.is_done)
			return true;
		if (!sched_graph_begin(op))
			stream->state = SCHED_STREAM_HELD;
		return false;
	case SCHED_CHOICE:
		return sched_graph_choose(op);
	default:
		stream_enter(stream, SCHED_STREAM_QUEUED, &sched->copies);
		return false;
	}
}

/* Advances a stream as far as possible; only operations that need a thread are left. */
static void stream_advance(struct sched_stream *stream)
{
	struct sched_context *context = stream->context;
	struct sched_op *op;

	while (stream->state != SCHED_STREAM_QUEUED &&
		stream->state != SCHED_STREAM_RUNNING) {
		stream_leave(stream);
		op = STAILQ_FIRST(&stream->ops);
		if (!op) {
			if (stream->children)
				sched_children_leave(stream);
			else if (stream->is_destroyed && !stream->n_waiters)
				stream_leave_context(stream);
			return;
		}
		if (context->fault) {
			if (op->kind == SCHED_HOST && op->host.even_after_fault) {
				stream_begin(stream, op);
				return;
			}
		} else if (stream_is_held(stream, op->ticket)) {
			stream->state = SCHED_STREAM_HELD;
			return;
		} else if (!stream_begin(stream, op)) {
			return;
		}
		stream_pop(stream);
	}
}

/* With the lock: nothing is left that could proceed by itself. */
static void streams_settle(struct sched *sched)
{
	struct sched_stream *stream;

	while ((stream = TAILQ_FIRST(&sched->kicked))) {
		TAILQ_REMOVE(&sched->kicked, stream, kick_link);
		stream->is_kicked = false;
		stream_advance(stream);
	}
}

void sched_lock(struct sched *sched)
{
	pthread_mutex_lock(&sched->lock);
}

void sched_unlock(struct sched *sched)
{
	uint32_t n_wake;

	streams_settle(sched);
	sched_tasks_publish(sched);
	n_wake = sched->n_wanted < sched->n_idle ? sched->n_wanted : sched->n_idle;
	sched->n_wanted = 0;
	while (n_wake--)
		vgpu_wake_one(&sched->kernel_work);
	if (!TAILQ_EMPTY(&sched->copies) || !TAILQ_EMPTY(&sched->polling))
		vgpu_wake_one(&sched->copy_work);
	if (!TAILQ_EMPTY(&sched->hosts) || !STAILQ_EMPTY(&sched->errands))
		vgpu_wake_one(&sched->host_work);
	pthread_mutex_unlock(&sched->lock);
}

/* Waits without settling the lock in between: the caller has kicked nothing. */
static void stream_sleep(struct sched_stream *stream, struct vgpu_nap *nap)
{
	stream->n_waiters++;
	vgpu_nap_cond(nap, &stream->done, &stream->context->sched->lock);
	stream->n_waiters--;
	if (stream->is_destroyed)
		sched_kick(stream);
}

static int stream_wait_locked(struct sched_stream *stream, uint64_t target)
{
	struct sched_context *context = stream->context;
	struct vgpu_nap nap = {};

	while (stream->n_completed < target)
		stream_sleep(stream, &nap);
	return context->fault;
}

/* If the operation just submitted is next and waits for the copy thread: do it. */
static void stream_run_inline(struct sched_stream *stream, struct sched_op *op)
{
	struct sched *sched = stream->context->sched;

	if (sched->n_stops || stream->state != SCHED_STREAM_QUEUED ||
		STAILQ_FIRST(&stream->ops) != op)
		return;
	TAILQ_REMOVE(&sched->copies, stream, wait_link);
	stream->state = SCHED_STREAM_RUNNING;
	sched_work_begin(sched);
	sched_unlock(sched);
	sched_op_run(op, stream);
	sched_lock(sched);
	sched_work_end(sched);
	sched_stream_complete(stream);
	streams_settle(sched);
}

/* Starts the threads that an operation cannot do without. Return: 0 or -errno. */
static int stream_staff(struct sched *sched, const struct sched_op *template)
{
	int r = 0;

	if (template->kind != SCHED_GRAPH)
		return sched_staff(sched, template->kind);
	for (unsigned int kind = 0; kind < _SCHED_N && !r; kind++)
		if (template->run.graph->kinds & 1u << kind)
			r = sched_staff(sched, kind);
	return r;
}

/* With the lock. Return: 0, or why the stream takes no operation. */
static int stream_refuses(const struct sched_stream *stream)
{
	if (stream->context->fault)
		return stream->context->fault;
	return stream->is_destroyed ? SOFTGPU_ERROR_INVALID_HANDLE : 0;
}

static int stream_submit_locked(
	struct sched_stream *stream, const struct sched_op *template, bool wait)
{
	struct sched_context *context = stream->context;
	bool is_copy = template->kind == SCHED_COPY || template->kind == SCHED_FILL;
	struct sched_op *op;
	uint64_t target;
	int r;

	op = NULL;
	r = stream_refuses(stream);
	if (!r && !stream_staff(context->sched, template))
		op = sched_op_new(context->sched, template);
	if (!op) {
		sched_op_discard(template);
		return r ? r : SOFTGPU_ERROR_OUT_OF_MEMORY;
	}
	op->stream = stream;
	op->ticket = context->next_ticket++;
	if (sched_is_traced())
		op->tag = sched_trace->get_tag(sched_trace->data);
	op->is_pending = op->kind == SCHED_LAUNCH || op->kind == SCHED_GRAPH;
	if (op->is_pending)
		sched_allowance_pend(context->sched->allowance);
	if (op->kind == SCHED_GRAPH)
		sched_graph_enlist(op);
	STAILQ_INSERT_TAIL(&stream->ops, op, next);
	stream->n_ops++;
	stream->context->sched->n_ops++;
	target = ++stream->n_submitted;
	if (stream->n_ops > 1 && !wait)
		return 0;
	sched_kick(stream);
	streams_settle(context->sched);
	if (is_copy && stream->n_completed + 1 == target &&
		(wait || sched_op_size(op) <= SCHED_INLINE_MAX))
		stream_run_inline(stream, op);
	if (!wait)
		return 0;
	if (stream->n_completed < target)
		sched_unlock(context->sched), sched_lock(context->sched);
	return stream_wait_locked(stream, target);
}

static void stream_wait_for_room(struct sched_stream *stream)
{
	struct vgpu_nap nap = {};

	while (stream->n_ops >= SCHED_QUEUE_MAX && !stream_refuses(stream))
		stream_sleep(stream, &nap);
}

int sched_submit(struct sched_stream *stream, const struct sched_op *template, bool wait)
{
	struct sched *sched = stream->context->sched;
	int r;

	sched_lock(sched);
	stream_wait_for_room(stream);
	r = stream_submit_locked(stream, template, wait);
	sched_unlock(sched);
	return r;
}

int sched_submit_if(struct sched_stream *stream, const struct sched_op *template,
	const uint64_t *countp, uint64_t count)
{
	struct sched *sched = stream->context->sched;
	int r;

	sched_lock(sched);
	stream_wait_for_room(stream);
	/* Partner: module_delete(). */
	if (__atomic_load_n(countp, __ATOMIC_ACQUIRE) == count) {
		r = stream_submit_locked(stream, template, false);
	} else {
		sched_op_discard(template);
		r = SCHED_E_CHANGED;
	}
	sched_unlock(sched);
	return r;
}

int sched_stream_wait(struct sched_stream *stream)
{
	struct sched_op nothing = { .kind = SCHED_NOTHING };
	struct sched *sched = stream->context->sched;
	int r;

	/* The legacy stream is done when what it waits for is, so it has to wait. */
	if (stream->is_legacy)
		return sched_submit(stream, &nothing, true);
	sched_lock(sched);
	r = stream_wait_locked(stream, stream->n_submitted);
	sched_unlock(sched);
	return r;
}

bool sched_stream_is_idle(struct sched_stream *stream)
{
	struct sched *sched = stream->context->sched;
	bool is_idle;

	sched_lock(sched);
	is_idle = STAILQ_EMPTY(&stream->ops);
	if (is_idle && stream->is_legacy)
		is_idle = !stream_is_held(stream, UINT64_MAX);
	sched_unlock(sched);
	return is_idle;
}
