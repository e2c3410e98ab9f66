/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Call names and properties */

#include "vgpu/g-calls.h"

static const char *const names[_VGPU_CALL_N] = {
	[0] = "padding",
	[VGPU_CALL_vgpuHello] = "vgpuHello",
	[VGPU_CALL_cuInit] = "cuInit",
	[VGPU_CALL_cuStreamGetPriority] = "cuStreamGetPriority",
	[VGPU_CALL_cuMemsetD16Async] = "cuMemsetD16Async",
	[VGPU_CALL_cuMemAlloc] = "cuMemAlloc",
	[VGPU_CALL_cuMemAlloc_v2] = "cuMemAlloc_v2",
	[VGPU_CALL_cuEventDestroy] = "cuEventDestroy",
	[VGPU_CALL_cuFind] = "cuFind",
	[VGPU_CALL_cuLaunch] = "cuLaunch",
	[VGPU_CALL_cuGraphLaunch] = "cuGraphLaunch",
	[VGPU_CALL_cuEventQuery] = "cuEventQuery",
	[VGPU_CALL_cuNameOf] = "cuNameOf",
	[VGPU_CALL_cuNumberOf] = "cuNumberOf",
	[VGPU_CALL_cuNumber] = "cuNumber",
};

const uint8_t vgpu_call_flags[_VGPU_CALL_N] = {
	[VGPU_CALL_vgpuHello] = VGPU_CALL_F_REMOTED | VGPU_CALL_F_IN_PLACE,
	[VGPU_CALL_cuStreamGetPriority] = VGPU_CALL_F_REMOTED | VGPU_CALL_F_CONTEXT |
		VGPU_CALL_F_IN_PLACE,
	[VGPU_CALL_cuMemsetD16Async] = VGPU_CALL_F_REMOTED | VGPU_CALL_F_ASYNC |
		VGPU_CALL_F_STREAM_ORDERED | VGPU_CALL_F_CONTEXT | VGPU_CALL_F_IN_PLACE,
	[VGPU_CALL_cuMemAlloc_v2] = VGPU_CALL_F_REMOTED | VGPU_CALL_F_CONTEXT |
		VGPU_CALL_F_IN_PLACE,
	[VGPU_CALL_cuEventDestroy] = VGPU_CALL_F_REMOTED | VGPU_CALL_F_ASYNC |
		VGPU_CALL_F_IN_PLACE,
	[VGPU_CALL_cuFind] = VGPU_CALL_F_REMOTED | VGPU_CALL_F_MAY_BLOCK |
		VGPU_CALL_F_LATER,
	[VGPU_CALL_cuLaunch] = VGPU_CALL_F_REMOTED | VGPU_CALL_F_ASYNC |
		VGPU_CALL_F_STREAM_ORDERED | VGPU_CALL_F_CONTEXT,
	[VGPU_CALL_cuEventQuery] = VGPU_CALL_F_REMOTED | VGPU_CALL_F_IN_PLACE,
};

const uint8_t vgpu_call_remembers[_VGPU_CALL_N] = {
	[VGPU_CALL_cuStreamGetPriority] = VGPU_REMEMBERS_STREAM,
};

const uint8_t vgpu_call_minor[_VGPU_CALL_N] = {
	[0] = 0,
	[VGPU_CALL_cuFind] = 2,
};

const uint32_t vgpu_call_request_max[_VGPU_CALL_N] = {
	[VGPU_CALL_vgpuHello] = 0,
	[VGPU_CALL_cuStreamGetPriority] = 9,
	[VGPU_CALL_cuMemsetD16Async] = 35,
	[VGPU_CALL_cuMemAlloc_v2] = 11,
	[VGPU_CALL_cuEventDestroy] = 9,
	[VGPU_CALL_cuFind] = 117,
	[VGPU_CALL_cuLaunch] = 55,
	[VGPU_CALL_cuEventQuery] = 9,
};

const char *vgpu_call_name(uint32_t call)
{
	if (call >= _VGPU_CALL_N || !names[call])
		return "?";
	return names[call];
}
