/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions: the numbers by which conditional nodes of graphs decide
 *
 * A handle is the generation, from 1, and the index. A generation ends when the last
 * reference does.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "vgpu/error.h"

#include "sched/condition.h"

#define CHUNK 1024u

static struct {
	pthread_mutex_t lock;
	uint32_t n_used; /* indices below were in use at least once */
	struct sched_condition *free;
	struct sched_condition *chunks[SCHED_CONDITIONS_MAX / CHUNK]; /* atomic */
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t state_of(uint32_t generation, uint32_t value)
{
	return (uint64_t)generation << 32 | value;
}

/* With the lock: one that has never been in use. Return: NULL: none is left. */
static struct sched_condition *take_new(void)
{
	uint32_t index = table.n_used;
	struct sched_condition **chunkp, *condition;

	if (index == SCHED_CONDITIONS_MAX)
		return NULL;
	chunkp = &table.chunks[index / CHUNK];
	if (!*chunkp) {
		struct sched_condition *chunk = calloc(CHUNK, sizeof(*chunk));

		if (!chunk)
			return NULL;
		/* Partner: the load in sched_condition_find(). */
		__atomic_store_n(chunkp, chunk, __ATOMIC_RELEASE);
	}
	condition = &(*chunkp)[index % CHUNK];
	condition->index = index;
	table.n_used++;
	return condition;
}

int sched_condition_new(struct sched_condition **conditionp,
	const struct sched_context *context, uint32_t first, bool has_first)
{
	struct sched_condition *condition;
	uint32_t generation;

	pthread_mutex_lock(&table.lock);
	condition = table.free;
	if (condition)
		table.free = condition->next;
	else
		condition = take_new();
	pthread_mutex_unlock(&table.lock);
	if (!condition)
		return vgpu_error_origin(-ENOMEM);
	generation = (uint32_t)(condition->state >> 32) + 1;
	if (!generation)
		generation = 1;
	condition->n_refs = 1;
	condition->first = first;
	condition->has_first = has_first;
	condition->owner = condition->user = NULL;
	__atomic_store_n(&condition->context, context, __ATOMIC_RELAXED);
	/* Partner: the loads in sched_condition_find() and _set(). */
	__atomic_store_n(&condition->state, state_of(generation, has_first ? first : 0),
		__ATOMIC_RELEASE);
	*conditionp = condition;
	return 0;
}

struct sched_condition *sched_condition_ref(struct sched_condition *condition)
{
	__atomic_fetch_add(&condition->n_refs, 1, __ATOMIC_RELAXED);
	return condition;
}

struct sched_condition *sched_condition_unref(struct sched_condition *condition)
{
	if (!condition ||
		__atomic_sub_fetch(&condition->n_refs, 1, __ATOMIC_ACQ_REL) != 0)
		return NULL;
	/* Kernels that still set it change a value that nobody reads. */
	__atomic_store_n(&condition->context, NULL, __ATOMIC_RELAXED);
	pthread_mutex_lock(&table.lock);
	condition->next = table.free;
	table.free = condition;
	pthread_mutex_unlock(&table.lock);
	return NULL;
}

uint64_t sched_condition_handle(const struct sched_condition *condition)
{
	uint64_t state = __atomic_load_n(&condition->state, __ATOMIC_RELAXED);

	return state_of((uint32_t)(state >> 32), condition->index);
}

struct sched_condition *sched_condition_find(uint64_t handle)
{
	uint32_t index = (uint32_t)handle, generation = (uint32_t)(handle >> 32);
	struct sched_condition *chunk, *condition;
	uint64_t state;

	if (index >= SCHED_CONDITIONS_MAX || !generation)
		return NULL;
	/* Partner: the store in take_new(). */
	chunk = __atomic_load_n(&table.chunks[index / CHUNK], __ATOMIC_ACQUIRE);
	if (!chunk)
		return NULL;
	condition = &chunk[index % CHUNK];
	/* Partner: the store in sched_condition_new(). */
	state = __atomic_load_n(&condition->state, __ATOMIC_ACQUIRE);
	if (state >> 32 != generation ||
		!__atomic_load_n(&condition->context, __ATOMIC_RELAXED))
		return NULL;
	return condition;
}

bool sched_condition_set(
	const struct sched_context *context, uint64_t handle, uint32_t value)
{
	struct sched_condition *condition = sched_condition_find(handle);
	uint32_t generation = (uint32_t)(handle >> 32);
	uint64_t state;

	if (!condition ||
		__atomic_load_n(&condition->context, __ATOMIC_RELAXED) != context)
		return false;
	state = __atomic_load_n(&condition->state, __ATOMIC_RELAXED);
	do {
		if (state >> 32 != generation)
			return false;
		/* Partner: sched_condition_value(), after the kernel is complete. */
	} while (!__atomic_compare_exchange_n(&condition->state, &state,
		state_of(generation, value), false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	return true;
}

uint32_t sched_condition_value(const struct sched_condition *condition)
{
	/* Partner: sched_condition_set(). */
	return (uint32_t)__atomic_load_n(&condition->state, __ATOMIC_ACQUIRE);
}

void sched_condition_begin(struct sched_condition *condition)
{
	uint64_t state = __atomic_load_n(&condition->state, __ATOMIC_RELAXED);

	if (condition->has_first)
		__atomic_store_n(&condition->state,
			state_of((uint32_t)(state >> 32), condition->first),
			__ATOMIC_RELAXED);
}
