/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the guest that graphs name
 *
 * There is one session in a process, which the driver's threads find by `owner`.
 */

#include <stdlib.h>

#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/stream/callbacks.h"
#include "worker/stream/functions.h"

#define FIRST_ENTRIES 64u

static struct session *owner;

void functions_init(struct session *session)
{
	pthread_mutex_init(&session->functions->lock, NULL);
	owner = session;
}

void functions_deinit(struct session *session)
{
	free(session->functions->entries);
	pthread_mutex_destroy(&session->functions->lock);
}

bool functions_any(struct session *session)
{
	return __atomic_load_n(&session->functions->n_live, __ATOMIC_RELAXED);
}

/* With the lock. Return: NULL if no function has this token. */
static struct function *find(struct functions *functions, const void *token)
{
	uint32_t index = (uint32_t)(uintptr_t)token;
	struct function *entry;

	if (index >= functions->n)
		return NULL;
	entry = &functions->entries[index];
	return entry->is_live && entry->sequence == (uintptr_t)token >> 32 ? entry : NULL;
}

static struct function *take_free(struct functions *functions)
{
	uint32_t max = functions->max ? functions->max * 2 : FIRST_ENTRIES;
	struct function *entries;

	if (functions->first_free) {
		struct function *entry = &functions->entries[functions->first_free - 1];

		functions->first_free = entry->next;
		return entry;
	}
	if (functions->n == functions->max) {
		if (max > FUNCTIONS_MAX)
			return NULL;
		entries = realloc(functions->entries, max * sizeof(*entries));
		if (!entries)
			return NULL;
		functions->entries = entries;
		functions->max = max;
	}
	functions->entries[functions->n] = (struct function){};
	return &functions->entries[functions->n++];
}

CUresult function_add(struct session *session, uint64_t cookie, void **tokenp)
{
	struct functions *functions = session->functions;
	struct function *entry;

	pthread_mutex_lock(&functions->lock);
	entry = take_free(functions);
	if (entry) {
		*entry = (struct function){
			.sequence = entry->sequence + 1,
			.is_live = true,
			.cookie = cookie,
		};
		*tokenp = (void *)(uintptr_t)((uint64_t)entry->sequence << 32 |
					      (uint32_t)(entry - functions->entries));
		__atomic_fetch_add(&functions->n_live, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&functions->lock);
	return entry ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Removes an entry. Return: false if no function has this token. */
static bool take(struct functions *functions, const void *token, struct function *taken)
{
	struct function *entry;

	pthread_mutex_lock(&functions->lock);
	entry = find(functions, token);
	if (entry) {
		*taken = *entry;
		entry->is_live = false;
		entry->next = functions->first_free;
		functions->first_free = (uint32_t)(entry - functions->entries) + 1;
		__atomic_fetch_sub(&functions->n_live, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&functions->lock);
	return entry;
}

bool function_find(struct session *session, const void *token, uint64_t *cookiep)
{
	struct functions *functions = session->functions;
	const struct function *entry;

	pthread_mutex_lock(&functions->lock);
	entry = find(functions, token);
	if (entry)
		*cookiep = entry->cookie;
	pthread_mutex_unlock(&functions->lock);
	return entry;
}

bool function_set_handle(struct session *session, const void *token, uint64_t handle)
{
	struct functions *functions = session->functions;
	struct function *entry;

	pthread_mutex_lock(&functions->lock);
	entry = find(functions, token);
	if (entry)
		entry->handle = handle;
	pthread_mutex_unlock(&functions->lock);
	return entry;
}

void function_withdraw(struct session *session, const void *token)
{
	struct function taken;

	take(session->functions, token, &taken);
}

void function_end(void *token)
{
	struct function taken;

	if (take(owner->functions, token, &taken))
		callbacks_give_back(owner, taken.cookie);
}

void function_destroy(void *token)
{
	struct function taken;

	if (!take(owner->functions, token, &taken))
		return;
	if (taken.handle)
		object_table_remove(
			&owner->objects[VGPU_HANDLE_USER_OBJECT], taken.handle, NULL);
	callbacks_notify(owner, taken.cookie);
}

/* With the lock. */
static bool has_ended(const struct function *entry)
{
	return entry->is_retired && entry->n_calls >= entry->n_expected;
}

/* Counts a call that has returned. */
static void count(void *token)
{
	struct functions *functions = owner->functions;
	struct function *entry;
	bool ends;

	pthread_mutex_lock(&functions->lock);
	entry = find(functions, token);
	if (entry)
		entry->n_calls++;
	ends = entry && has_ended(entry);
	pthread_mutex_unlock(&functions->lock);
	if (ends)
		function_end(token);
}

void function_run(void *token)
{
	uint64_t cookie;

	if (!function_find(owner, token, &cookie))
		return;
	callbacks_call(owner, cookie);
	count(token);
}

void function_retire(struct session *session, void *token, uint64_t n_launches)
{
	struct functions *functions = session->functions;
	struct function *entry;
	bool ends;

	pthread_mutex_lock(&functions->lock);
	entry = find(functions, token);
	if (entry) {
		entry->is_retired = true;
		entry->n_expected = n_launches;
	}
	ends = entry && has_ended(entry);
	pthread_mutex_unlock(&functions->lock);
	if (ends)
		function_end(token);
}

/*
 * Graphs
 */

static void set_object(
	struct functions *functions, const void *token, CUuserObject object)
{
	struct function *entry;

	pthread_mutex_lock(&functions->lock);
	entry = find(functions, token);
	if (entry)
		entry->object = object;
	pthread_mutex_unlock(&functions->lock);
}

CUresult function_tie(struct session *session, CUgraph graph, void *token)
{
	const struct vgpu_driver *driver = &session->driver->table;
	CUuserObject object;
	CUresult result;

	if (!driver->cuUserObjectCreate || !driver->cuGraphRetainUserObject ||
		!driver->cuUserObjectRelease)
		return CUDA_SUCCESS;
	result = driver->cuUserObjectCreate(
		&object, token, function_end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
	if (result != CUDA_SUCCESS)
		return result;
	set_object(session->functions, token, object);
	result = driver->cuGraphRetainUserObject(
		graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
	if (result != CUDA_SUCCESS)
		driver->cuUserObjectRelease(object, 1);
	return result;
}

void function_untie(struct session *session, CUgraph graph, const void *token)
{
	struct functions *functions = session->functions;
	const struct function *entry;
	CUuserObject object = NULL;

	pthread_mutex_lock(&functions->lock);
	entry = find(functions, token);
	if (entry)
		object = entry->object;
	pthread_mutex_unlock(&functions->lock);
	if (object && session->driver->table.cuGraphReleaseUserObject)
		session->driver->table.cuGraphReleaseUserObject(graph, object, 1);
}
