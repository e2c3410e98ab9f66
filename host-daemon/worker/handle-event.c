/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on events
 */

#include "g-handlers.h"
#include "worker/call.h"
#include "worker/session.h"

CUresult handle_cuEventCreate(struct call *call,
	const Vgpu__CuEventCreateRequest *request, Vgpu__CuEventCreateReply *reply)
{
	CUresult result;
	CUevent event;

	result = call->driver->cuEventCreate(&event, request->flags);
	if (result != CUDA_SUCCESS)
		return result;
	result = object_add_at(call, VGPU_HANDLE_EVENT, request->event, event);
	if (result != CUDA_SUCCESS)
		call->driver->cuEventDestroy_v2(event);
	return result;
}
