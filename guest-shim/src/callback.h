/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Callbacks: functions of the program that a stream calls
 *
 * A function never leaves the process. The host is given a number for it, a cookie, and
 * hands that back when the function is due; one thread, started at first use, runs
 * them one after the other. In it every call that travels is refused.
 *
 * The host hands each number back once: when the function is due, or as void when it
 * never will be, as it is with a host function whose context has a fault and ends. Only
 * the host knows what comes when in a context that one thread ends and another uses, so
 * no entry is dropped here.
 */

#include <stdint.h>

#include "vgpu/cuda.h"

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
