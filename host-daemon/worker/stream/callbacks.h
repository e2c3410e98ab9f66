/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Callbacks: functions of the guest that the driver calls
 *
 * The driver is given functions of the worker. When it calls one, on a thread of its own,
 * the callback is due: it joins a queue, and the driver's thread waits. A thread of the
 * guest takes callbacks off that queue, with one vgpuCallbackNext each, runs them, and
 * sends vgpuCallbackDone, which releases the driver's thread. So a callback that blocks
 * delays what waits for it in the driver, and one lane: neither the ring, nor a lock that
 * other calls need.
 *
 * free -> pending (given to the driver) -> due (called) -> running (taken by the guest)
 * -> done -> free, by the driver's thread; pending -> due, as void, if its context was
 * destroyed and the driver never calls -> running -> free
 *
 * A token is an index into the table and the entry's sequence, so a stale or forged one
 * is detected. Each submitted callback is returned once, also one that was refused in a
 * call without a reply: so the guest knows when none is left, whichever of its threads
 * destroy contexts. The lock guards everything; it is not held while waiting. A guest
 * that never takes or never finishes a callback blocks its own streams; the session's end
 * is the end of the process, even if threads wait here.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

struct context;
struct runner;
struct session;

/* Not yet run, of one session: a guest waits before it has as many. */
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
	uint32_t next; /* of the free ones or of those due: index + 1 */
	CUresult status;
	uint64_t cookie;	       /* the guest's name for it */
	const struct context *context; /* NULL: of none any more */
	bool is_void; /* not to be run, and no thread of the driver waits */
};

struct callbacks {
	pthread_mutex_t lock;
	pthread_cond_t is_due;
	pthread_cond_t is_done;
	struct callback *entries;
	uint32_t n;
	uint32_t max;
	uint32_t first_free;
	uint32_t first_due;
	uint32_t last_due;
	bool is_asked; /* a lane waits for one to be due */
};

/* The fields of a due callback for the guest. */
struct callback_due {
	uint64_t token;
	uint64_t cookie;
	CUresult status;
	bool is_void; /* it is returned without being run */
};

void callbacks_init(struct session *session);
void callbacks_deinit(struct session *session);

/*
 * Puts a callback into a stream of the driver.
 *
 * @is_host_function:	as cuLaunchHostFunc does, else as cuStreamAddCallback
 *
 * Return: the driver's, or CUDA_ERROR_OUT_OF_MEMORY beyond CALLBACKS_MAX.
 */
CUresult callbacks_submit(struct session *session, CUstream stream,
	const struct context *context, uint64_t cookie, bool is_host_function);

/*
 * Waits until a callback is due and takes it. On a lane.
 *
 * Return: CUDA_ERROR_NOT_PERMITTED while another lane waits.
 */
CUresult callbacks_next(struct session *session, struct callback_due *due);

/* The guest has run one. Return: CUDA_ERROR_INVALID_VALUE where none such runs. */
CUresult callbacks_done(struct session *session, uint64_t token);

/*
 * Before a context is destroyed: waits, without a lock, until its streams have completed
 * all work before callbacks and the callbacks have run. On a lane.
 */
void callbacks_drain(
	struct session *session, struct runner *runner, struct context *context);

/* Returns a refused callback, of whose refusal the guest does not know yet. */
void callbacks_give_back(struct session *session, uint64_t cookie);

/* After a context was destroyed: returns callbacks that the driver will never call. */
void callbacks_forget_context(struct session *session, const struct context *context);
