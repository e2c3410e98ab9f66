/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks: functions of the guest that the driver calls
 *
 * The driver returns a token and not a pointer, so a call that arrives after its entry
 * was freed is detected. There is one session in a process, which the functions below,
 * given only the token, find by `owner`.
 */

#include <stdlib.h>

#include "vgpu/wake.h"
#include "worker/base/context.h"
#include "worker/base/session.h"
#include "worker/stream/callbacks.h"
#include "worker/stream/functions.h"

#define FIRST_ENTRIES 64u

/* With those that are not submitted: as many functions as graphs name, and more. */
#define ENTRIES_MAX (4 * CALLBACKS_MAX)

static struct session *owner;

void callbacks_init(struct session *session)
{
	struct callbacks *callbacks = session->callbacks;

	pthread_mutex_init(&callbacks->lock, NULL);
	pthread_cond_init(&callbacks->is_due, NULL);
	pthread_cond_init(&callbacks->is_done, NULL);
	owner = session;
}

void callbacks_deinit(struct session *session)
{
	struct callbacks *callbacks = session->callbacks;

	free(callbacks->entries);
	pthread_cond_destroy(&callbacks->is_done);
	pthread_cond_destroy(&callbacks->is_due);
	pthread_mutex_destroy(&callbacks->lock);
}

static uint64_t token_of(const struct callbacks *callbacks, const struct callback *entry)
{
	return (uint64_t)entry->sequence << 32 | (uint32_t)(entry - callbacks->entries);
}

/* With the lock. Return: NULL if no callback in that state has this token. */
static struct callback *find(
	struct callbacks *callbacks, uint64_t token, enum callback_state state)
{
	uint32_t index = (uint32_t)token;
	struct callback *entry;

	if (index >= callbacks->n)
		return NULL;
	entry = &callbacks->entries[index];
	return entry->sequence == token >> 32 && entry->state == state ? entry : NULL;
}

static bool grow(struct callbacks *callbacks)
{
	uint32_t max = callbacks->max ? callbacks->max * 2 : FIRST_ENTRIES;
	struct callback *entries;

	if (max > ENTRIES_MAX)
		return false;
	entries = realloc(callbacks->entries, max * sizeof(*entries));
	if (!entries)
		return false;
	callbacks->entries = entries;
	callbacks->max = max;
	return true;
}

static struct callback *take_free(struct callbacks *callbacks)
{
	struct callback *entry;

	if (callbacks->first_free) {
		entry = &callbacks->entries[callbacks->first_free - 1];
		callbacks->first_free = entry->next;
		return entry;
	}
	if (callbacks->n == callbacks->max && !grow(callbacks))
		return NULL;
	entry = &callbacks->entries[callbacks->n++];
	*entry = (struct callback){};
	return entry;
}

static bool add(struct callbacks *callbacks, const struct context *context,
	uint64_t cookie, uint64_t *tokenp)
{
	struct callback *entry;

	pthread_mutex_lock(&callbacks->lock);
	entry = callbacks->n_submitted < CALLBACKS_MAX ? take_free(callbacks) : NULL;
	if (entry) {
		*entry = (struct callback){
			.state = CALLBACK_PENDING,
			.sequence = entry->sequence + 1,
			.cookie = cookie,
			.context = context,
			.is_submitted = true,
		};
		callbacks->n_submitted++;
		*tokenp = token_of(callbacks, entry);
	}
	pthread_mutex_unlock(&callbacks->lock);
	return entry;
}

static void release(struct callbacks *callbacks, struct callback *entry)
{
	callbacks->n_submitted -= entry->is_submitted;
	entry->state = CALLBACK_FREE;
	entry->next = callbacks->first_free;
	callbacks->first_free = (uint32_t)(entry - callbacks->entries) + 1;
}

static void withdraw(struct callbacks *callbacks, uint64_t token)
{
	struct callback *entry;

	pthread_mutex_lock(&callbacks->lock);
	entry = find(callbacks, token, CALLBACK_PENDING);
	if (entry)
		release(callbacks, entry);
	pthread_mutex_unlock(&callbacks->lock);
}

static void put_due(struct callbacks *callbacks, struct callback *entry)
{
	uint32_t link = (uint32_t)(entry - callbacks->entries) + 1;

	entry->state = CALLBACK_DUE;
	entry->next = 0;
	if (callbacks->last_due)
		callbacks->entries[callbacks->last_due - 1].next = link;
	else
		callbacks->first_due = link;
	callbacks->last_due = link;
	vgpu_wake_one(&callbacks->is_due);
}

/* With the lock, on the driver's thread: makes the guest run the callback, and waits for
 * its completion. */
static void run_due(struct callbacks *callbacks, struct callback *entry)
{
	uint64_t token = token_of(callbacks, entry);
	struct vgpu_nap nap = {};

	put_due(callbacks, entry);
	/* The table may be reallocated while the lock is free. */
	while (!(entry = find(callbacks, token, CALLBACK_DONE)))
		vgpu_nap_cond(&nap, &callbacks->is_done, &callbacks->lock);
	release(callbacks, entry);
}

static void call_guest(uint64_t token, CUresult status)
{
	struct callbacks *callbacks = owner->callbacks;
	struct callback *entry;

	pthread_mutex_lock(&callbacks->lock);
	entry = find(callbacks, token, CALLBACK_PENDING);
	if (entry) {
		entry->status = status;
		run_due(callbacks, entry);
	}
	pthread_mutex_unlock(&callbacks->lock);
}

/* With the lock. Return: a callback that was not submitted, or NULL without memory. */
static struct callback *add_due(struct callbacks *callbacks, uint64_t cookie)
{
	struct callback *entry = take_free(callbacks);

	if (entry)
		*entry = (struct callback){
			.sequence = entry->sequence + 1,
			.cookie = cookie,
		};
	return entry;
}

void callbacks_call(struct session *session, uint64_t cookie)
{
	struct callbacks *callbacks = session->callbacks;
	struct callback *entry;

	pthread_mutex_lock(&callbacks->lock);
	entry = add_due(callbacks, cookie);
	if (entry)
		run_due(callbacks, entry);
	pthread_mutex_unlock(&callbacks->lock);
}

static void put_detached(struct session *session, uint64_t cookie, bool is_void)
{
	struct callbacks *callbacks = session->callbacks;
	struct callback *entry;

	pthread_mutex_lock(&callbacks->lock);
	entry = add_due(callbacks, cookie);
	if (entry) {
		entry->is_void = is_void;
		entry->is_detached = true;
		put_due(callbacks, entry);
	}
	pthread_mutex_unlock(&callbacks->lock);
}

void callbacks_notify(struct session *session, uint64_t cookie)
{
	put_detached(session, cookie, false);
}

void callbacks_give_back(struct session *session, uint64_t cookie)
{
	put_detached(session, cookie, true);
}

static void run_host_function(void *data)
{
	call_guest((uintptr_t)data, CUDA_SUCCESS);
}

static void run_stream_callback(CUstream stream, CUresult status, void *data)
{
	call_guest((uintptr_t)data, status);
}

CUresult callbacks_submit(struct session *session, CUstream stream,
	const struct context *context, uint64_t cookie, bool is_host_function)
{
	const struct vgpu_driver *driver = &session->driver->table;
	CUresult result;
	uint64_t token;

	if (is_host_function ? !driver->cuLaunchHostFunc : !driver->cuStreamAddCallback)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!add(session->callbacks, context, cookie, &token))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = is_host_function
			 ? driver->cuLaunchHostFunc(
				   stream, run_host_function, (void *)(uintptr_t)token)
			 : driver->cuStreamAddCallback(stream, run_stream_callback,
				   (void *)(uintptr_t)token, 0);
	if (result != CUDA_SUCCESS)
		withdraw(session->callbacks, token);
	return result;
}

CUresult callbacks_next(struct session *session, struct callback_due *due)
{
	struct callbacks *callbacks = session->callbacks;
	CUresult result = CUDA_ERROR_NOT_PERMITTED;
	struct callback *entry;
	struct vgpu_nap nap = {};

	pthread_mutex_lock(&callbacks->lock);
	if (!callbacks->is_asked) {
		callbacks->is_asked = true;
		while (!callbacks->first_due)
			vgpu_nap_cond(&nap, &callbacks->is_due, &callbacks->lock);
		callbacks->is_asked = false;

		entry = &callbacks->entries[callbacks->first_due - 1];
		callbacks->first_due = entry->next;
		if (!entry->next)
			callbacks->last_due = 0;
		entry->state = CALLBACK_RUNNING;
		*due = (struct callback_due){
			.token = token_of(callbacks, entry),
			.cookie = entry->cookie,
			.status = entry->status,
			.is_void = entry->is_void,
		};
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&callbacks->lock);
	return result;
}

CUresult callbacks_done(struct session *session, uint64_t token)
{
	struct callbacks *callbacks = session->callbacks;
	struct callback *entry;

	pthread_mutex_lock(&callbacks->lock);
	entry = find(callbacks, token, CALLBACK_RUNNING);
	if (entry && entry->is_detached) {
		release(callbacks, entry);
	} else if (entry) {
		entry->state = CALLBACK_DONE;
		vgpu_wake_all(&callbacks->is_done);
	}
	pthread_mutex_unlock(&callbacks->lock);
	return entry ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool has_any(struct callbacks *callbacks, const struct context *context)
{
	bool found = false;
	uint32_t i;

	pthread_mutex_lock(&callbacks->lock);
	for (i = 0; i < callbacks->n && !found; i++)
		found = callbacks->entries[i].state != CALLBACK_FREE &&
			callbacks->entries[i].context == context;
	pthread_mutex_unlock(&callbacks->lock);
	return found;
}

void callbacks_drain(
	struct session *session, struct runner *runner, struct context *context)
{
	if ((has_any(session->callbacks, context) || functions_any(session)) &&
		context_enter(session, runner, context) == CUDA_SUCCESS)
		session->driver->table.cuCtxSynchronize();
}

void callbacks_forget_context(struct session *session, const struct context *context)
{
	struct callbacks *callbacks = session->callbacks;
	uint32_t i;

	pthread_mutex_lock(&callbacks->lock);
	for (i = 0; i < callbacks->n; i++)
		if (callbacks->entries[i].state == CALLBACK_PENDING &&
			callbacks->entries[i].context == context) {
			callbacks->entries[i].is_void = true;
			callbacks->entries[i].is_detached = true;
			callbacks->entries[i].context = NULL;
			put_due(callbacks, &callbacks->entries[i]);
		}
	pthread_mutex_unlock(&callbacks->lock);
}
