/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One call to the host
 *
 * Stubs fill a request and give it to one of two functions:
 *
 *	shim_call_sync()   waits for the reply
 *	shim_call_async()  does not, unless VGPU_SYNC=1 or the caller wants the result
 *
 * Both first check, in this order: the process is ready, the thread may call (not from a
 * callback), a context is current where one is needed, no fault is pending. When the
 * host is gone, every call returns CUDA_ERROR_UNKNOWN, those that wait within some
 * seconds.
 */

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/g-calls.h"

#include "process/shim.h"
#include "process/thread.h"

/* The result of a call on a channel without a host. */
#define SHIM_ERROR_HOST_GONE CUDA_ERROR_UNKNOWN

struct shim_stream;

struct shim_call {
	uint16_t id; /* enum vgpu_call */
	/* An asynchronous call whose result is wanted all the same. */
	bool wants_result;
	/* The calling thread, once shim_call_begin() let it pass. */
	struct shim_thread *thread;
	/* A call that waits for what its caller has spun for already. */
	bool parks;
	/* A call that waits for what may never happen; see shim_wait_rest(). */
	bool rests;
};

#define SHIM_CALL_INIT(_id)                                                              \
	{                                                                                \
		.id = (_id)                                                              \
	}

/* Called once the channel is open, before any call. */
int shim_call_setup(void);

/*
 * Sends a request and waits for its reply.
 *
 * @replyp:	the reply, valid until the thread's next call; NULL unless the call
 *		reached the host and the answer could be read. May be NULL.
 *
 * Return: the reply's result, or a local error.
 */
CUresult shim_call_sync(struct shim_call *call, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, const ProtobufCMessage **replyp);

/*
 * Makes the checks beforehand, for an asynchronous call that needs them before its own;
 * they are not made again.
 */
CUresult shim_call_begin(struct shim_call *call);

/*
 * Sends a request. One that is ordered by a stream waits while too much of that stream
 * is in flight, and is counted.
 *
 * @stream:	0 for the default stream; not looked at unless the call is stream-ordered
 */
CUresult shim_call_async(
	struct shim_call *call, const ProtobufCMessage *request, CUstream stream);

/* Makes the checks alone. */
CUresult shim_call_check(enum vgpu_call id);

/* Returns: the error, or what comes before any check of arguments. */
CUresult shim_call_error(const struct shim_call *call, CUresult error);

/* The same for CUDA_ERROR_INVALID_VALUE. */
CUresult shim_call_invalid(enum vgpu_call id);

/* Logs, once for each call, that it is not remoted, and why; NULL: it is only not done.
 * Return: CUDA_ERROR_NOT_SUPPORTED. */
CUresult shim_call_refused(enum vgpu_call id, const char *why);

/* Reports the end of a thread to the host. */
void shim_call_lane_exit(struct shim_thread *thread);
