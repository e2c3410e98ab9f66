/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Uses: events and streams that a lane's call uses in the driver
 *
 * A program may destroy an event or a stream while another of its threads waits for it,
 * and cuEventDestroy() and cuStreamDestroy() return at once, as CUDA documents. A driver,
 * however, would have a handle destroyed during a call. So objects that a lane's call
 * names are recorded until that call has returned from the driver; destroying one
 * withdraws the guest's handle, and the last such call destroys the driver's object.
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

/* Events and streams that one call may name, and be safe. */
#define RUNNER_USES_MAX 4u

struct use {
	struct use *next;
	enum vgpu_handle_kind kind;
	void *driver;	   /* NULL: its context has gone */
	const void *owner; /* that context */
	bool is_last;	   /* to destroy it: the guest has done so */
};

struct uses {
	pthread_mutex_t lock;
	struct use *first;
};

void uses_init(struct session *session);
void uses_deinit(struct session *session);

/* Whether a handle of that kind is noted when this call names it. */
bool use_is_noted(const struct call *call, enum vgpu_handle_kind kind, uint64_t handle);

/*
 * Notes what the call has just looked up, and looks again.
 *
 * Return: CUDA_SUCCESS, or CUDA_ERROR_INVALID_HANDLE: it is gone.
 */
CUresult use_begin(struct call *call, enum vgpu_handle_kind kind, uint64_t handle,
	void *driver, const void *owner);

/* The call has returned from the driver. */
void uses_end(struct call *call);

/* Destroys a driver's object that has left its table, or leaves that to its last user. */
CUresult use_destroy(struct call *call, enum vgpu_handle_kind kind, void *driver);

/* The driver's objects of a context are gone. */
void uses_forget_context(struct session *session, const struct context *context);
