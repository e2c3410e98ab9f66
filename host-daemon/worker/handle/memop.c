/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream memory operations: writes of and waits for words
 */

#include "driver/driver.h"
#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/base/object-handles.h"
#include "worker/stream/memop.h"

CUresult handle_cuStreamBatchMemOp_v2(struct call *call,
	const Vgpu__CuStreamBatchMemOpV2Request *request,
	Vgpu__CuStreamBatchMemOpV2Reply *reply)
{
	CUstreamBatchMemOpParams *ops;
	CUresult result;
	void *stream;
	uint32_t n;

	if (!call->driver->cuStreamBatchMemOp_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_STREAM, request->stream, false, &stream);
	if (result == CUDA_SUCCESS)
		result = memops_take(call, &request->ops, &ops, &n);
	if (result == CUDA_SUCCESS && n != request->count)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	return call->driver->cuStreamBatchMemOp_v2(stream, n, ops, request->flags);
}
