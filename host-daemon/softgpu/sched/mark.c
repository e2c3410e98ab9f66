/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks: points in streams that others wait for
 */

#include <stdlib.h>

#include "vgpu/wake.h"

#include "sched/sched.h"

struct sched_mark *sched_mark_new(struct sched *sched)
{
	struct sched_mark *mark = calloc(1, sizeof(*mark));

	if (!mark)
		return NULL;
	mark->sched = sched;
	mark->n_refs = 1;
	TAILQ_INIT(&mark->waiters);
	return mark;
}

struct sched_mark *sched_mark_ref(struct sched_mark *mark)
{
	__atomic_fetch_add(&mark->n_refs, 1, __ATOMIC_RELAXED);
	return mark;
}

struct sched_mark *sched_mark_unref(struct sched_mark *mark)
{
	/* A waiting stream holds a reference, so the list is empty. */
	if (mark && __atomic_sub_fetch(&mark->n_refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(mark);
	return NULL;
}

bool sched_mark_is_done(struct sched_mark *mark)
{
	/* Partner: sched_mark_finish(). */
	return __atomic_load_n(&mark->is_done, __ATOMIC_ACQUIRE);
}

void sched_mark_finish(struct sched_mark *mark)
{
	struct sched_stream *stream;

	mark->time_ns = sched_now_ns();
	__atomic_store_n(&mark->is_done, true, __ATOMIC_RELEASE);
	TAILQ_FOREACH(stream, &mark->waiters, wait_link)
		sched_kick(stream);
	if (mark->sched->n_mark_waiters)
		vgpu_wake_all(&mark->sched->mark_done);
}

void sched_mark_wait(struct sched_mark *mark)
{
	struct sched *sched = mark->sched;
	struct vgpu_nap nap = {};

	if (sched_mark_is_done(mark))
		return;
	sched_lock(sched);
	sched->n_mark_waiters++;
	while (!mark->is_done)
		vgpu_nap_cond(&nap, &sched->mark_done, &sched->lock);
	sched->n_mark_waiters--;
	sched_unlock(sched);
}
