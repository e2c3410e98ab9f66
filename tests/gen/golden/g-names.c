/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the fields of calls, and of results */

#include <stddef.h>

#include "vgpu/g-calls.h"
#include "vgpu/names.h"

static const char *const fields[_VGPU_CALL_N] = {
	[0] = NULL,
	[VGPU_CALL_cuStreamGetPriority] = "2 hStream",
	[VGPU_CALL_cuMemsetD16Async] = "2 dstDevice,3 us,4 N,5 hStream",
	[VGPU_CALL_cuMemAlloc_v2] = "3 bytesize",
	[VGPU_CALL_cuEventDestroy] = "2 hEvent",
	[VGPU_CALL_cuFind] = "3 $name,4 count",
	[VGPU_CALL_cuLaunch] = "3 hStream,100 block,101 word",
	[VGPU_CALL_cuEventQuery] = "2 hEvent",
};

const char *vgpu_call_fields(uint32_t call)
{
	return call < _VGPU_CALL_N && fields[call] ? fields[call] : "";
}

const char *vgpu_result_name(int32_t result)
{
	switch (result) {
	case 0:
		return "CUDA_SUCCESS";
	case 1:
		return "CUDA_ERROR_INVALID_VALUE";
	default:
		return NULL;
	}
}
