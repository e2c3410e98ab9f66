/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * State of a thread: last error, device, launches that are being configured
 */

#include <stdbool.h>

#include "runtime/types.h"

/* Launches in the arguments of launches: programs do not nest even two. */
#define RT_MAX_CONFIGURATIONS 32

struct rt_configuration {
	dim3 grid;
	dim3 block;
	size_t shared_size;
	cudaStream_t stream;
};

struct rt_thread {
	int last_error;
	int device;
	/* By cudaSetDevice(): lists of valid devices do not change it any more. */
	bool is_device_chosen;
	/* The current context and the epoch (context.h) when it was last found usable. */
	CUcontext context;
	unsigned long epoch;
	unsigned int n_configurations;
	struct rt_configuration configurations[RT_MAX_CONFIGURATIONS];
};

extern __thread struct rt_thread rt_thread;

/*
 * Ends each call: records an error as the thread's last one.
 *
 * Return: the error.
 */
int rt_leave(int error);
