/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses: events and streams that a lane's call has passed to the driver
 */

#include "vgpu/log.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/base/uses.h"

void uses_init(struct session *session)
{
	pthread_mutex_init(&session->uses.lock, NULL);
}

void uses_deinit(struct session *session)
{
	pthread_mutex_destroy(&session->uses.lock);
}

bool use_is_noted(const struct call *call, enum vgpu_handle_kind kind, uint64_t handle)
{
	/* The special streams cannot be destroyed. */
	return !call->runner->is_dispatcher &&
	       (kind == VGPU_HANDLE_EVENT || kind == VGPU_HANDLE_STREAM) &&
	       vgpu_handle_kind(handle) == kind;
}

static CUresult destroy(struct session *session, enum vgpu_handle_kind kind, void *driver)
{
	const struct vgpu_driver *table = &session->driver->table;

	return kind == VGPU_HANDLE_EVENT ? table->cuEventDestroy_v2(driver)
					 : table->cuStreamDestroy_v2(driver);
}

/* With the lock. Return: a use of that object, or NULL. */
static struct use *find(struct uses *uses, enum vgpu_handle_kind kind, const void *driver)
{
	struct use *use;

	for (use = uses->first; use; use = use->next)
		if (use->kind == kind && use->driver == driver)
			return use;
	return NULL;
}

/* With the lock: removes a use from the list. Return: whether the caller has to destroy
 * its object. */
static bool leave(struct uses *uses, struct use *use)
{
	struct use **nextp = &uses->first, *other;

	while (*nextp != use)
		nextp = &(*nextp)->next;
	*nextp = use->next;
	if (!use->is_last || !use->driver)
		return false;
	other = find(uses, use->kind, use->driver);
	if (other)
		other->is_last = true;
	return !other;
}

CUresult use_begin(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	void *driver, const void *owner)
{
	struct session *session = call->session;
	struct runner *runner = call->runner;
	struct use *use;

	/* No waiting call has that many. */
	if (runner->n_uses == RUNNER_USES_MAX)
		return CUDA_SUCCESS;
	use = &runner->uses[runner->n_uses++];
	pthread_mutex_lock(&session->uses.lock);
	*use = (struct use){
		.next = session->uses.first,
		.kind = kind,
		.driver = driver,
		.owner = owner,
	};
	session->uses.first = use;
	pthread_mutex_unlock(&session->uses.lock);
	/* Partner: a destroying thread frees the handle, then looks for uses, so one of
	 * the two threads sees the other. */
	if (!object_table_find(&session->objects[kind], handle))
		return CUDA_ERROR_INVALID_HANDLE;
	return CUDA_SUCCESS;
}

void uses_end(struct call *call)
{
	struct session *session = call->session;
	struct runner *runner = call->runner;
	bool is_last;

	while (runner->n_uses) {
		struct use *use = &runner->uses[--runner->n_uses];

		pthread_mutex_lock(&session->uses.lock);
		is_last = leave(&session->uses, use);
		pthread_mutex_unlock(&session->uses.lock);
		if (is_last && destroy(session, use->kind, use->driver) != CUDA_SUCCESS)
			vgpu_log_debug("an object in use is not destroyed");
	}
}

CUresult use_destroy(struct call *call, enum vgpu_handle_kind kind, void *driver)
{
	struct session *session = call->session;
	struct use *use;

	pthread_mutex_lock(&session->uses.lock);
	use = find(&session->uses, kind, driver);
	if (use)
		use->is_last = true;
	pthread_mutex_unlock(&session->uses.lock);
	return use ? CUDA_SUCCESS : destroy(session, kind, driver);
}

void uses_forget_context(struct session *session, const struct context *context)
{
	struct use *use;

	pthread_mutex_lock(&session->uses.lock);
	for (use = session->uses.first; use; use = use->next)
		if (use->owner == context)
			use->driver = NULL;
	pthread_mutex_unlock(&session->uses.lock);
}
