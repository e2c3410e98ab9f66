/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Managed variables: a part of the arena that the worker gives out
 *
 * All else in the arena is the guest's to share out. Managed variables of an image get
 * their place while a driver of ours loads it, which the guest cannot know beforehand,
 * so they lie in runs of extents of their own. The guest maps a run when it asks
 * for a variable in it.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "worker/ranges.h"

struct call;
struct session;

/* A program has a handful of images with such variables, and a run holds many. */
#define MANAGED_RUNS_MAX 64u

struct managed_run {
	uint32_t first;
	uint32_t n_extents;
};

struct managed {
	pthread_mutex_t lock;
	struct ranges taken;
	struct managed_run runs[MANAGED_RUNS_MAX];
	uint32_t n_runs;
	uint32_t n_registered; /* of the runs, those that the driver was told of */
};

void managed_init(struct session *session);
void managed_deinit(struct session *session);

/* For the driver, which calls them while it loads or unloads an image. */
void *managed_alloc(void *session, uint64_t size);
void managed_free(void *session, void *memory, uint64_t size);

/* After an image was loaded: lets the device reach runs that are new. */
CUresult managed_register(struct call *call);

/* Where a variable lies. Return: the run that holds it, or whether it is in none. */
bool managed_find(struct session *session, uint64_t address, uint64_t size,
	struct managed_run *runp);
