/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Captures of streams
 *
 * While any capture of the process is live, every call has a reply and none is answered
 * from a completion word: the driver's modes and errors then apply unchanged. The worker
 * publishes the number of live captures before it replies to the call that begins or ends
 * one, so a thread that learns of a capture from another thread sees the number, too:
 * shim_channel_has_capture() of wire/channel.h.
 */

#include <stdbool.h>

#include "vgpu/cuda.h"

#include "process/shim.h"

/*
 * Checks a copy while a capture is live: pageable memory is copied through staging
 * blocks, whose contents differ when the graph is launched again.
 *
 * @waits:	the program waits for the copy to complete
 *
 * Return: the error of the copy if the stream is being captured and the copy cannot be.
 */
CUresult shim_capture_check_copy(CUstream stream, bool is_pageable, bool waits);

/* Whether a stream is being captured, and the capture is valid. */
bool shim_capture_is_active(CUstream stream);

/*
 * Asked before memory is allocated or freed without the host: most modes of capture
 * forbid that (CUDA Driver API, cuThreadExchangeStreamCaptureMode).
 */
CUresult shim_capture_check_memory(void);

/* Logs, once, that a node or a captured copy names pageable memory. Return:
 * CUDA_ERROR_NOT_SUPPORTED. */
CUresult shim_capture_refuse_pageable(void);
