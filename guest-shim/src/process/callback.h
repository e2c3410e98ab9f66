/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Callbacks: functions of the program that a stream calls
 *
 * A function pointer never leaves the process. The host gets a number for it, a cookie,
 * and returns that when the function is due; one thread, started at first use, runs them
 * one after the other. In it the program may make no call that depends on a device, even
 * if the guest library could answer it.
 *
 * The host returns each cookie once: when the function is due, or as void if it will
 * never run, such as a host function whose context has a fault and ends. Only the host
 * knows the order of events in a context that one thread destroys while another uses it,
 * so no entry is dropped here.
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
 * Stores a callback, and ensures that a thread will run it.
 *
 * @cookiep:	its number for the host
 *
 * Return: CUDA_ERROR_OUT_OF_MEMORY, or the error of a host that is gone.
 */
CUresult shim_callback_add(const struct shim_callback *callback, uint64_t *cookiep);

/* The host did not take it. */
void shim_callback_withdraw(uint64_t cookie);
