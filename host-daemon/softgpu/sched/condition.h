/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Conditions: the numbers by which conditional nodes of graphs decide
 *
 * Kernels set a condition by its handle, at any time and without a lock, also by a handle
 * that is stale or made up. So the memory of conditions is never freed, and generation
 * and value are one atomic word: nothing is set of a condition that has taken the place
 * of another one.
 */

#include <stdbool.h>
#include <stdint.h>

struct sched_context;

/* Of a process; a program has about one for each conditional node. Bounds their memory to
 * 4 MiB. */
#define SCHED_CONDITIONS_MAX (1u << 16)

struct sched_condition {
	uint64_t state; /* atomic: the generation << 32 | the value */
	const struct sched_context *context; /* whose kernels may set it; atomic */
	uint32_t n_refs;		     /* atomic */
	uint32_t index;
	uint32_t first; /* the value at the beginning of each launch, if there is one */
	bool has_first;
	void *owner, *user;	      /* the caller's */
	struct sched_condition *next; /* the caller's; of a free one, the next */
};

/* Return: 0 with one reference, or -ENOMEM. */
int sched_condition_new(struct sched_condition **conditionp,
	const struct sched_context *context, uint32_t first, bool has_first);
struct sched_condition *sched_condition_ref(struct sched_condition *condition);
struct sched_condition *sched_condition_unref(struct sched_condition *condition);

/* Never 0. */
uint64_t sched_condition_handle(const struct sched_condition *condition);

/* Return: a condition, which somebody must have a reference to, or NULL. */
struct sched_condition *sched_condition_find(uint64_t handle);

/* For kernels of a context. Return: whether it has such a condition. */
bool sched_condition_set(
	const struct sched_context *context, uint64_t handle, uint32_t value);

uint32_t sched_condition_value(const struct sched_condition *condition);

/* At the beginning of a launch. */
void sched_condition_begin(struct sched_condition *condition);
