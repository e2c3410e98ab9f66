/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Callbacks: functions of the guest that the driver wants called
 *
 * The driver is given functions of ours. When it calls one, on a thread of its own, the
 * callback is due: it joins a queue, and the driver's thread waits. A thread of the
 * guest takes callbacks off that queue, one vgpuCallbackNext each, runs them, and says
 * so by vgpuCallbackDone, which lets the driver's thread go. So what waits for a
 * callback that blocks is what waits for it in the driver, and one lane: neither the
 * ring, nor a lock that others need.
 *
 *	free -> pending (given to the driver) -> due (called) -> running (taken by the
 *	guest) -> done -> free, by the driver's thread
 *	pending -> due as one that is void, where its context went and the driver never
 *	calls -> running -> free
 *
 * A token is an index into the table and the entry's sequence, so one that is old, or
 * made up, is found out. Each callback that was submitted is handed back once, also one
 * that was refused when nobody waited for the answer: by that the guest knows when it
 * has no more to ask for, whichever of its threads end contexts. The lock guards all;
 * nothing is held while waiting. A guest that never takes or never ends a callback stops
 * its own streams; the session's end is the end of the process, whatever thread waits
 * here.
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
	uint64_t cookie; /* the guest's name for it */
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

/* What the guest is told of a callback that is due. */
struct callback_due {
	uint64_t token;
	uint64_t cookie;
	CUresult status;
	bool is_void; /* it is only given back */
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
 * A context is about to go: waits, holding nothing, until what is in its streams in
 * front of callbacks is done and they have run. On a lane.
 */
void callbacks_drain(
	struct session *session, struct runner *runner, struct context *context);

/* The guest does not know yet that a callback was refused: it is given back. */
void callbacks_give_back(struct session *session, uint64_t cookie);

/* A context is gone: callbacks that the driver never called it never will, and they are
 * given back. */
void callbacks_forget_context(struct session *session, const struct context *context);
