/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: streams that share tickets, a legacy stream and a fault
 */

#include "vgpu/wake.h"

#include "sched/sched.h"

void sched_context_new(struct sched_context *context, struct sched *sched)
{
	struct sched_stream *legacy = &context->legacy;

	*context = (struct sched_context){ .sched = sched };
	TAILQ_INIT(&context->streams);
	TAILQ_INIT(&context->lanes);
	pthread_cond_init(&context->done, NULL);
	legacy->context = context;
	legacy->is_blocking = true;
	legacy->is_legacy = true;
	legacy->is_destroyed = true;
	STAILQ_INIT(&legacy->ops);
	pthread_cond_init(&legacy->done, NULL);
}

/* Calls may still refer to earlier work, so only the fault is reset: tickets and counts
 * of operations continue. */
void sched_context_open(struct sched_context *context)
{
	sched_lock(context->sched);
	__atomic_store_n(&context->fault, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&context->stop, 0, __ATOMIC_RELAXED);
	context->legacy.is_destroyed = false;
	/* Of the context's place; the memory is the context's. */
	context->legacy.n_refs = 1;
	TAILQ_INSERT_TAIL(&context->streams, &context->legacy, link);
	sched_unlock(context->sched);
}

void sched_context_init(struct sched_context *context, struct sched *sched)
{
	sched_context_new(context, sched);
	sched_context_open(context);
}

/* With the lock. */
static void context_fail(struct sched_context *context, int fault)
{
	struct sched_stream *stream;

	if (!context->fault)
		__atomic_store_n(&context->fault, fault, __ATOMIC_RELEASE);
	/* Partner: the engine, and grid_work(). */
	__atomic_store_n(&context->stop, fault, __ATOMIC_RELAXED);
	TAILQ_FOREACH(stream, &context->streams, link) {
		if (stream->n_waiters)
			vgpu_wake_all(&stream->done);
		sched_kick(stream);
	}
	TAILQ_FOREACH(stream, &context->lanes, link)
		sched_kick(stream);
}

void sched_context_set_fault(struct sched_context *context, int fault)
{
	context_fail(context, fault);
}

void sched_context_close(struct sched_context *context, int fault)
{
	struct sched *sched = context->sched;
	struct sched_stream *stream;
	struct vgpu_nap nap = {};

	sched_lock(sched);
	TAILQ_FOREACH(stream, &context->streams, link)
		stream->is_destroyed = true;
	context_fail(context, fault);
	context->n_waiters++;
	sched_unlock(sched);

	sched_lock(sched);
	while (!TAILQ_EMPTY(&context->streams) || context->n_waiters > 1)
		vgpu_nap_cond(&nap, &context->done, &sched->lock);
	context->n_waiters--;
	sched_unlock(sched);
}

void sched_context_free(struct sched_context *context)
{
	pthread_cond_destroy(&context->legacy.done);
	pthread_cond_destroy(&context->done);
}

void sched_context_deinit(struct sched_context *context)
{
	sched_context_close(context, SOFTGPU_ERROR_LAUNCH_FAILED);
	sched_context_free(context);
}

int sched_context_fault(const struct sched_context *context)
{
	return __atomic_load_n(&context->fault, __ATOMIC_ACQUIRE);
}

static bool context_has_before(const struct sched_context *context, uint64_t ticket)
{
	const struct sched_stream *stream;
	const struct sched_op *op;

	TAILQ_FOREACH(stream, &context->streams, link) {
		op = STAILQ_FIRST(&stream->ops);
		if (op && op->ticket < ticket)
			return true;
	}
	return false;
}

int sched_context_wait(struct sched_context *context)
{
	struct sched *sched = context->sched;
	struct vgpu_nap nap = {};
	uint64_t ticket;
	int fault;

	sched_lock(sched);
	ticket = context->next_ticket;
	context->n_waiters++;
	while (context_has_before(context, ticket))
		vgpu_nap_cond(&nap, &context->done, &sched->lock);
	context->n_waiters--;
	if (context->n_waiters)
		vgpu_wake_all(&context->done);
	fault = context->fault;
	sched_unlock(sched);
	return fault;
}
