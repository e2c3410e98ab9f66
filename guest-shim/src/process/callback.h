/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Callbacks: functions of the program that a stream or a graph calls
 *
 * A function pointer never leaves the process. The host gets a number for it, a cookie,
 * and returns that when the function is due; one thread, started at first use, runs them
 * one after the other. In it the program may make no call that depends on a device, even
 * if the guest library could answer it.
 *
 * The host returns the cookie of a function in a stream once: when the function is due,
 * or as void if it will never run, such as a host function whose context has a fault and
 * ends; and that of a destructor when it is due. A function in a graph is due at each
 * launch, and its cookie is void once no graph has it any more. Only the host
 * knows the order of events in a context that one thread destroys while another uses it,
 * so no entry is dropped here.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"

/* Not yet run, at a time. More wait: the host's table holds as many, and those that are
 * run but not yet reported. */
#define SHIM_CALLBACKS_MAX (63u << 10)

/* In graphs and user objects. The host refuses more than half of it: the others are about
 * to be returned, so that there is room soon. */
#define SHIM_CALLBACKS_OF_GRAPHS_MAX (128u << 10)

enum shim_callback_kind {
	SHIM_CALLBACK_OF_STREAM,
	SHIM_CALLBACK_OF_GRAPH, /* may be due any number of times */
	SHIM_CALLBACK_OF_OBJECT,
};

struct shim_callback {
	enum shim_callback_kind kind;
	/* Called with the data once no graph has it any more, or if it will never run in
	 * its stream; or NULL. */
	CUhostFn released;
	CUhostFn host_function; /* or */
	CUstreamCallback stream_callback;
	void *data;
	CUstream stream;
};

/*
 * Stores a callback, and ensures that a thread will run it.
 *
 * @cookiep:	its number for the host
 *
 * Return: CUDA_ERROR_OUT_OF_MEMORY, or the error of a host that is gone.
 */
CUresult shim_callback_add(const struct shim_callback *callback, uint64_t *cookiep);

/* The host did not take it. */
void shim_callback_withdraw(uint64_t cookie);

/* Return: false if there is none with that cookie. */
bool shim_callback_find(uint64_t cookie, struct shim_callback *callback);
