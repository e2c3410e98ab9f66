/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream memory operations: writes of and waits for words
 */

#include <string.h>

#include "driver/driver.h"
#include "g-handlers.h"
#include "vgpu/checked.h"
#include "worker/base/call.h"
#include "worker/base/object-handles.h"
#include "worker/memory/access.h"

/* Copies only the fields of the operation: later drivers may use the other bytes. */
static CUresult copy_op(struct call *call, const CUstreamBatchMemOpParams *from,
	CUstreamBatchMemOpParams *to)
{
	uint32_t size = 8;

	switch (from->operation) {
	case CU_STREAM_MEM_OP_BARRIER:
		to->memoryBarrier.operation = from->operation;
		to->memoryBarrier.flags = from->memoryBarrier.flags;
		return CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		to->flushRemoteWrites.operation = from->operation;
		to->flushRemoteWrites.flags = from->flushRemoteWrites.flags;
		return CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		size = 4;
		break;
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* Both kinds have the same layout. */
	to->writeValue.operation = from->operation;
	to->writeValue.address = from->writeValue.address;
	if (size == 4)
		to->writeValue.value = from->writeValue.value;
	else
		to->writeValue.value64 = from->writeValue.value64;
	to->writeValue.flags = from->writeValue.flags;
	return access_check(call, to->writeValue.address, size);
}

CUresult handle_cuStreamBatchMemOp_v2(struct call *call,
	const Vgpu__CuStreamBatchMemOpV2Request *request,
	Vgpu__CuStreamBatchMemOpV2Reply *reply)
{
	CUstreamBatchMemOpParams op, *ops;
	CUresult result;
	uint64_t size;
	void *stream;

	if (!call->driver->cuStreamBatchMemOp_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!request->count || !vgpu_mul_u64(request->count, sizeof(op), &size) ||
		size != request->ops.len)
		return CUDA_ERROR_INVALID_VALUE;
	ops = call_alloc(call, size);
	if (!ops)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = object_get(call, VGPU_HANDLE_STREAM, request->stream, false, &stream);
	for (uint32_t i = 0; i < request->count && result == CUDA_SUCCESS; i++) {
		memcpy(&op, request->ops.data + i * sizeof(op), sizeof(op));
		result = copy_op(call, &op, &ops[i]);
	}
	if (result != CUDA_SUCCESS)
		return result;
	return call->driver->cuStreamBatchMemOp_v2(
		stream, request->count, ops, request->flags);
}
