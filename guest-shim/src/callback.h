/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Callbacks: functions of the program that a stream calls
 *
 * A function never leaves the process. The host is given a number for it, a cookie, and
 * hands that back when the function is due; one thread, started at first use, runs
 * them one after the other. In it the program may call nothing that has to do with a
 * device, whoever would answer.
 *
 * The host hands each number back once: when the function is due, or as void when it
 * never will be, as it is with a host function whose context has a fault and ends. Only
 * the host knows what comes when in a context that one thread ends and another uses, so
 * no entry is dropped here.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

#include "shim.h"

/* Not yet run, at a time. More wait: the host's table holds as many, and those that are
 * run but not yet reported. */
#define SHIM_CALLBACKS_MAX (63u << 10)

struct shim_callback {
	CUhostFn host_function; /* or */
	CUstreamCallback stream_callback;
	void *data;
	CUstream stream;
};

/*
 * Keeps a callback, and makes sure that somebody will run it.
 *
 * @cookiep:	what the host is given
 *
 * Return: CUDA_ERROR_OUT_OF_MEMORY, or the error of a host that is gone.
 */
CUresult shim_callback_add(const struct shim_callback *callback, uint64_t *cookiep);

/* The host did not take it. */
void shim_callback_withdraw(uint64_t cookie);

/* The calling thread runs a callback. */
extern __thread bool shim_callback_is_here
	__attribute__((__tls_model__("initial-exec"), __visibility__("hidden")));

/* Whether CUDA has to refuse what the calling thread asks. A child that a callback forks
 * has no stream to hold up: it is told what every such child is.
 */
static inline bool shim_callback_forbids(void)
{
	return __builtin_expect(shim_callback_is_here, 0) && shim_is_ready();
}
