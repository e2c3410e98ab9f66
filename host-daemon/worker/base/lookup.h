/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Look-ups: of variables whose memory the worker reads
 *
 * A driver that places managed variables itself frees them with their module, library or
 * context. If the guest unloads one while another of its threads looks up a variable, the
 * worker must not read what the driver has freed. So a look-up is noted from before the
 * driver's call until the worker has done with the memory, and a thread that is about to
 * have the driver free variables waits for the look-ups of these that are noted. Their
 * handle is no longer valid then, so there will be no more of them. A look-up itself
 * waits for nothing.
 *
 * Variables that softgpu places are in the arena, which stays. It is asked for its
 * window, and for it nothing is noted.
 */

#include <pthread.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/handle.h"

struct call;
struct context;
struct object;
struct session;

struct lookup {
	struct session *session; /* NULL: it is not noted */
	struct lookup *next;
	/* The variables are freed together with these. */
	const void *parent;	       /* the driver's module or library */
	const struct context *owner;   /* of a module; a library has none */
	const struct context *context; /* in which it takes place, or NULL */
};

struct lookups {
	pthread_mutex_t lock; /* guards the rest, and is free while a thread waits */
	pthread_cond_t ended;
	struct lookup *first;
};

void lookups_init(struct session *session);
void lookups_deinit(struct session *session);

/*
 * Finds a module or library, and notes the look-up of a variable in it.
 *
 * @lookup:	zeroed; lookup_end() takes it whatever the result is
 *
 * Return: as object_find(), or CUDA_ERROR_CONTEXT_IS_DESTROYED.
 */
CUresult lookup_begin(struct lookup *lookup, struct call *call,
	enum vgpu_handle_kind kind, uint64_t handle, struct object **objectp);
void lookup_end(struct lookup *lookup);

/* Waits for those of a module or library of the driver, after its handle was removed. */
void lookups_await(struct session *session, const void *parent);

/* The same for all in a context, after its contents were removed. */
void lookups_await_context(struct session *session, const struct context *context);
