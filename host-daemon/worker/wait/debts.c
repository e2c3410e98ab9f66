/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debts: synchronising calls that waits by words have saved, to be made up for
 */

#include <stdint.h>

#include "worker/base/context.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/wait/debts.h"
#include "worker/wait/faults.h"

void debts_init(struct session *session)
{
	pthread_mutex_init(&session->debts->lock, NULL);
}

void debt_owe(struct session *session, struct stream *stream)
{
	struct debts *debts = session->debts;

	if (__atomic_load_n(&stream->owes, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&debts->lock);
	if (!stream->owes && debts->n_owing < DEBTS_MAX && stream_is_live(stream)) {
		__atomic_store_n(&stream->owes, true, __ATOMIC_RELAXED);
		debts->owing[debts->n_owing] = stream;
		__atomic_store_n(&debts->n_owing, debts->n_owing + 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&debts->lock);
}

/* Return: whether the debt is paid. The call does not block, because the driver itself
 * has reported the stream as complete; the guest could have changed its words. */
static bool pay(struct session *session, struct runner *runner, struct stream *stream)
{
	const struct vgpu_driver *driver = &session->driver->table;
	CUresult result;

	result = context_enter(session, runner, stream->context);
	if (result == CUDA_SUCCESS)
		result = driver->cuStreamQuery(stream->object.driver);
	if (result == CUDA_ERROR_NOT_READY)
		return false;
	if (result == CUDA_SUCCESS)
		result = driver->cuStreamSynchronize(stream->object.driver);
	if (fault_is_sticky(result))
		fault_note(session, stream->context, result);
	return true;
}

void debts_pay(struct session *session, struct runner *runner)
{
	struct debts *debts = session->debts;
	uint32_t i, n_kept = 0;

	/* Only lanes and the dispatcher submit work: while no lane runs a call, a
	 * complete stream stays complete until the dispatcher takes its next frame. */
	if (!__atomic_load_n(&debts->n_owing, __ATOMIC_RELAXED) ||
		__atomic_load_n(&debts->n_running, __ATOMIC_ACQUIRE) ||
		!session->driver->table.cuStreamQuery)
		return;
	pthread_mutex_lock(&debts->lock);
	/* A query would invalidate a capture, which may be about to begin. Partner:
	 * captures_hold(). */
	if (session_is_capturing(session)) {
		pthread_mutex_unlock(&debts->lock);
		return;
	}
	for (i = 0; i < debts->n_owing; i++) {
		if (pay(session, runner, debts->owing[i]))
			__atomic_store_n(&debts->owing[i]->owes, false, __ATOMIC_RELAXED);
		else
			debts->owing[n_kept++] = debts->owing[i];
	}
	__atomic_store_n(&debts->n_owing, n_kept, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&debts->lock);
}

/* Removes that stream, or all of that context, from the list. */
static void forget(struct session *session, const struct stream *stream,
	const struct context *context)
{
	struct debts *debts = session->debts;
	uint32_t i, n_kept = 0;

	pthread_mutex_lock(&debts->lock);
	for (i = 0; i < debts->n_owing; i++) {
		if (debts->owing[i] != stream && debts->owing[i]->context != context)
			debts->owing[n_kept++] = debts->owing[i];
		else
			__atomic_store_n(&debts->owing[i]->owes, false, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&debts->n_owing, n_kept, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&debts->lock);
}

void debts_forget(struct session *session, const struct stream *stream)
{
	forget(session, stream, NULL);
}

void debts_forget_context(struct session *session, const struct context *context)
{
	forget(session, NULL, context);
}
