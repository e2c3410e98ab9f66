/* Generated from protocol/api by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* From the number of a call to its function */

#include "vgpu/g-calls.h"
#include "g-handlers.h"
#include "worker/handle/generated.h"

static int (*const dispatchers[_VGPU_CALL_N])(struct call *) = {
	[VGPU_CALL_vgpuHello] = dispatch_vgpuHello,
	[VGPU_CALL_cuStreamGetPriority] = dispatch_cuStreamGetPriority,
	[VGPU_CALL_cuMemsetD16Async] = dispatch_cuMemsetD16Async,
	[VGPU_CALL_cuMemAlloc_v2] = dispatch_cuMemAlloc_v2,
	[VGPU_CALL_cuEventDestroy] = dispatch_cuEventDestroy,
	[VGPU_CALL_cuEventQuery] = dispatch_cuEventQuery,
	[VGPU_CALL_cuFind] = dispatch_cuFind,
	[VGPU_CALL_cuLaunch] = dispatch_cuLaunch,
};

int dispatch_call(struct call *call)
{
	uint32_t id = call->frame->call;

	if (id >= _VGPU_CALL_N || !dispatchers[id])
		return call_violation(call, "no such call");
	return dispatchers[id](call);
}
