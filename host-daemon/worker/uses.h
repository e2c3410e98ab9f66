/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Uses: events and streams that a lane's call has given to the driver
 *
 * A program may destroy an event or a stream while another of its threads waits for it,
 * and cuEventDestroy() and cuStreamDestroy() return at once, as CUDA has it. To a driver
 * that is another matter: it is called with a handle that is destroyed under the call. So
 * what a lane's call names is noted until that call has returned from the driver; who
 * destroys it takes the handle from the guest, and leaves the driver's object to the
 * last such call.
 *
 * Calls of the dispatcher are not noted. They do not block, and the destructions
 * that a program does not wait for are the dispatcher's, too.
 *
 * With its context an event or a stream is gone, whoever uses it: CUDA leaves it to the
 * program that no other call is under way then.
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

/* Destroys a driver's object that has left its table, or leaves that to who uses it. */
CUresult use_destroy(struct call *call, enum vgpu_handle_kind kind, void *driver);

/* The driver's objects of a context are gone. */
void uses_forget_context(struct session *session, const struct context *context);
