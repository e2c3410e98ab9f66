/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Call ids */

#pragma once

#include <stdint.h>

enum vgpu_call {
	VGPU_CALL_vgpuHello = 1,
	VGPU_CALL_cuInit = 16,
	VGPU_CALL_cuStreamGetPriority = 17,
	VGPU_CALL_cuMemsetD16Async = 18,
	VGPU_CALL_cuMemAlloc = 19,
	VGPU_CALL_cuMemAlloc_v2 = 20,
	VGPU_CALL_cuEventDestroy = 21,
	VGPU_CALL_cuFind = 22,
	VGPU_CALL_cuLaunch = 23,
	VGPU_CALL_cuGraphLaunch = 24,
	VGPU_CALL_cuEventQuery = 25,
	VGPU_CALL_cuNameOf = 26,
	VGPU_CALL_cuNumberOf = 28,
	VGPU_CALL_cuNumber = 29,
	_VGPU_CALL_N = 30,
};

enum {
	VGPU_CALL_F_REMOTED = 1u << 0,	      /* has messages */
	VGPU_CALL_F_ASYNC = 1u << 1,	      /* no reply, unless asked for */
	VGPU_CALL_F_MAY_BLOCK = 1u << 2,      /* never run by the dispatcher itself */
	VGPU_CALL_F_STREAM_ORDERED = 1u << 3, /* counts in the progress of its stream */
	VGPU_CALL_F_CONTEXT = 1u << 4,	      /* needs the lane's context made current */
	VGPU_CALL_F_IN_PLACE = 1u << 5,	      /* packing reads no memory of the program */
	VGPU_CALL_F_LATER = 1u << 6,	      /* not in minor version 0 of the protocol */
};

/* How long the answer to a call stays true. */
enum {
	VGPU_REMEMBERS_NOTHING,
	VGPU_REMEMBERS_CONSTANT, /* as long as the process lives */
	VGPU_REMEMBERS_STREAM,	 /* until a stream changes or ends */
	VGPU_REMEMBERS_CODE,	 /* until code is unloaded */
	VGPU_REMEMBERS_SETTING,	 /* until a limit, an attribute or code changes */
	_VGPU_REMEMBERS_N,
};

/* Returns: the name of the call, or "?". */
const char *vgpu_call_name(uint32_t call);

extern const uint8_t vgpu_call_flags[_VGPU_CALL_N];
extern const uint8_t vgpu_call_remembers[_VGPU_CALL_N];
extern const uint8_t vgpu_call_minor[_VGPU_CALL_N];
extern const uint32_t vgpu_call_request_max[_VGPU_CALL_N];
