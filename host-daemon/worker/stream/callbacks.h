/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Callbacks: functions of the guest that the driver calls
 *
 * The worker passes its own functions to the driver. When the driver calls one, on a
 * driver thread, the callback is due: it is queued, and the driver's thread waits. A
 * thread of the guest takes callbacks from that queue, with one vgpuCallbackNext each,
 * runs them, and sends vgpuCallbackDone, which releases the driver's thread. So a
 * callback that blocks delays dependent work in the driver, and one lane, but neither the
 * ring nor any lock that other calls need.
 *
 * free -> pending (given to the driver) -> due (called) -> running (taken by the guest)
 * -> done -> free, by the driver's thread; pending -> due, as void, if its context was
 * destroyed and the driver never calls -> running -> free
 *
 * A token is an index into the table and the entry's sequence, so a stale or forged one
 * is detected. Each submitted callback is returned once, also one that was refused in a
 * call without a reply: so the guest can count outstanding callbacks, whichever of its
 * threads destroy contexts. The lock guards all fields and is released while waiting. A
 * guest that never takes or never finishes a callback blocks only its own streams;
 * threads that wait here do not delay the exit of the process.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

struct context;
struct runner;
struct session;

/* Callbacks that are submitted to streams of one session and not yet run; the guest
 * library waits before it has that many. */
#define CALLBACKS_MAX (64u << 10)

enum callback_state {
	CALLBACK_FREE,
	CALLBACK_PENDING,
	CALLBACK_DUE,
	CALLBACK_RUNNING,
	CALLBACK_DONE,
	_CALLBACK_STATE_N,
};

struct callback {
	enum callback_state state;
	uint32_t sequence;
	uint32_t next; /* in the list of free or of due entries: index + 1 */
	CUresult status;
	uint64_t cookie;	       /* identifies it to the guest */
	const struct context *context; /* NULL once destroyed */
	bool is_void;		       /* must not run */
	bool is_submitted;	       /* counts towards CALLBACKS_MAX */
	bool is_detached;	       /* no thread of the driver waits */
};

struct callbacks {
	pthread_mutex_t lock;
	pthread_cond_t is_due;
	pthread_cond_t is_done;
	struct callback *entries;
	uint32_t n;
	uint32_t max;
	uint32_t n_submitted;
	uint32_t first_free;
	uint32_t first_due;
	uint32_t last_due;
	bool is_asked; /* a lane waits for a due callback */
};

/* The fields of a due callback for the guest. */
struct callback_due {
	uint64_t token;
	uint64_t cookie;
	CUresult status;
	bool is_void; /* to be completed without running */
};

void callbacks_init(struct session *session);
void callbacks_deinit(struct session *session);

/*
 * Queues a callback to a stream of the driver.
 *
 * @is_host_function:	as cuLaunchHostFunc does, else as cuStreamAddCallback
 *
 * Return: the driver's result, or CUDA_ERROR_OUT_OF_MEMORY beyond CALLBACKS_MAX.
 */
CUresult callbacks_submit(struct session *session, CUstream stream,
	const struct context *context, uint64_t cookie, bool is_host_function);

/*
 * Waits until a callback is due and takes it. On a lane.
 *
 * Return: CUDA_ERROR_NOT_PERMITTED while another lane waits.
 */
CUresult callbacks_next(struct session *session, struct callback_due *due);

/* The guest has run a callback. Return: CUDA_ERROR_INVALID_VALUE if that token is not
 * running. */
CUresult callbacks_done(struct session *session, uint64_t token);

/*
 * Before a context is destroyed: waits, without a lock, until its streams have completed
 * all work before callbacks and the callbacks have run. On a lane.
 */
void callbacks_drain(
	struct session *session, struct runner *runner, struct context *context);

/*
 * Callbacks that were not submitted to a stream, but are due at once; they do not count
 * towards CALLBACKS_MAX, because no message of the guest waits for room. Without memory
 * they are dropped.
 *
 * callbacks_call() waits until the guest has run the callback, on a thread of the driver;
 * callbacks_notify() does not wait. callbacks_give_back() returns the cookie of one that
 * will not run: its submission was refused in a call without a reply, or its graph has
 * ended.
 */
void callbacks_call(struct session *session, uint64_t cookie);
void callbacks_notify(struct session *session, uint64_t cookie);
void callbacks_give_back(struct session *session, uint64_t cookie);

/* After a context was destroyed: returns callbacks that the driver will never call. */
void callbacks_forget_context(struct session *session, const struct context *context);
