/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on memory of other processes
 */

#include <string.h>

#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/memory/ipc.h"

CUresult handle_cuIpcGetMemHandle(struct call *call,
	const Vgpu__CuIpcGetMemHandleRequest *request,
	Vgpu__CuIpcGetMemHandleReply *reply)
{
	struct ipc_export exported;
	CUresult result;

	result = ipc_export(call, request->dptr, &exported);
	if (result != CUDA_SUCCESS)
		return result;
	reply->token.data = call_alloc(call, sizeof(exported.token));
	if (!reply->token.data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(reply->token.data, exported.token, sizeof(exported.token));
	reply->token.len = sizeof(exported.token);
	reply->pages_size = exported.pages_size;
	reply->offset = exported.offset;
	reply->size = exported.size;
	return CUDA_SUCCESS;
}
