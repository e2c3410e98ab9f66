/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Managed variables: the part of the arena that the worker allocates
 *
 * The guest allocates the rest of the arena. softgpu places the managed variables of an
 * image while it loads it, at addresses that the guest cannot choose, so they have
 * separate runs of extents. The guest maps a run when it looks up a variable in it.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "worker/base/ranges.h"

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
	uint32_t n_registered; /* of the runs, those registered with the driver */
};

void managed_init(struct session *session);
void managed_deinit(struct session *session);

/* Called by the driver while it loads or unloads an image. */
void *managed_alloc(void *session, uint64_t size);
void managed_free(void *session, void *memory, uint64_t size);

/* Registers new runs with the driver after an image was loaded. */
CUresult managed_register(struct call *call);

/* Finds the run that contains a variable. Return: false if there is none. */
bool managed_find(struct session *session, uint64_t address, uint64_t size,
	struct managed_run *runp);
