/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Captures of streams
 *
 * While any capture of the process is live, every call has a reply and none is answered
 * from a completion word: the driver's modes and errors then hold by themselves. How many
 * are live the worker tells, before it answers the call that begins or ends one, so a
 * thread that is told of a capture by another one sees it, too.
 */

#include <stdbool.h>

#include "vgpu/cuda.h"

#include "shim.h"

static inline bool shim_capture_is_live(void)
{
	/* Partner: the worker's release store. It stands in the line of n_faults, which
	 * is read before each call anyway. */
	return __builtin_expect(
		__atomic_load_n(&shim_channel.control->n_captures, __ATOMIC_ACQUIRE), 0);
}

/*
 * Asked before a copy while a capture is live: pageable memory goes through staging
 * blocks, which a graph that is launched again would find with other contents.
 *
 * @waits:	the copy is one of those that the program waits for
 *
 * Return: the error of the copy where the stream is being captured and the copy cannot
 *	   be.
 */
CUresult shim_capture_check_copy(CUstream stream, bool is_pageable, bool waits);

/*
 * Asked before memory is allocated or freed without the host: most modes of capture
 * forbid that (CUDA Driver API, cuThreadExchangeStreamCaptureMode).
 */
CUresult shim_capture_check_memory(void);

/* Logs, once, that a node or a captured copy names pageable memory. Return:
 * CUDA_ERROR_NOT_SUPPORTED. */
CUresult shim_capture_refuse_pageable(void);
