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
 * Captures a copy of pageable memory while a capture is live: such memory is copied
 * through staging blocks, whose contents differ when the graph is launched again.
 *
 * @waits:	the program waits for the copy to complete
 * @copy:	as a node of a graph has it
 *
 * Return: whether the copy is dealt with: captured or refused, with that result. If not,
 * it is sent as if there were no capture, and the host captures it.
 */
bool shim_capture_copy(CUstream stream, bool is_pageable, bool waits,
	const CUDA_MEMCPY3D *copy, CUresult *resultp);

/* What makes a node of such a copy, and puts it behind what the stream has captured. */
typedef CUresult (*shim_capture_copier)(CUstream stream, const CUDA_MEMCPY3D *copy);
void shim_capture_set_copier(shim_capture_copier copier);

/* Whether a stream is being captured, and the capture is valid. */
bool shim_capture_is_active(CUstream stream);

/*
 * Asked before memory is allocated or freed without the host: most modes of capture
 * forbid that (CUDA Driver API, cuThreadExchangeStreamCaptureMode).
 */
CUresult shim_capture_check_memory(void);
