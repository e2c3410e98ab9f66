/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Uses: events and streams that a lane's call has passed to the driver
 *
 * A program may destroy an event or a stream while another of its threads waits for it,
 * and cuEventDestroy() and cuStreamDestroy() return at once, as CUDA documents. The
 * driver's object, however, must not be destroyed during a driver call that uses it. So
 * the objects of a lane's call are recorded until that call has returned from the driver.
 * The guest's destruction frees only the handle then, and the last such call destroys the
 * driver's object.
 *
 * Calls of the dispatcher are not recorded. They do not block, and asynchronous
 * destructions run on the dispatcher, too.
 *
 * Destroying a context destroys its events and streams, whether in use or not: CUDA
 * requires the program to have no other call in progress then.
 */

#include <pthread.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/handle.h"

struct call;
struct context;
struct session;

/* Events and streams of one call that are protected. */
#define RUNNER_USES_MAX 4u

struct use {
	struct use *next;
	enum vgpu_handle_kind kind;
	void *driver;	   /* NULL: its context was destroyed */
	const void *owner; /* its context */
	bool is_last;	   /* destroys the object: the guest has destroyed it already */
};

struct uses {
	pthread_mutex_t lock;
	struct use *first;
};

void uses_init(struct session *session);
void uses_deinit(struct session *session);

/* Whether this call has to record the use of a handle of that kind. */
bool use_is_noted(const struct call *call, enum vgpu_handle_kind kind, uint64_t handle);

/*
 * Records the use of an object that the call has looked up, and looks it up again.
 *
 * Return: CUDA_SUCCESS, or CUDA_ERROR_INVALID_HANDLE if it was destroyed meanwhile.
 */
CUresult use_begin(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	void *driver, const void *owner);

/* Ends the uses of a call that has returned from the driver. */
void uses_end(struct call *call);

/* Destroys a driver's object whose handle is free already, or leaves that to its last
 * user. */
CUresult use_destroy(struct call *call, enum vgpu_handle_kind kind, void *driver);

/* The driver has destroyed all objects of a context. */
void uses_forget_context(struct session *session, const struct context *context);
