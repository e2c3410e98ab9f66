/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of operations on words
 */

#include <string.h>

#include "worker/memory/access.h"
#include "worker/stream/memop.h"

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

CUresult memops_take(struct call *call, const ProtobufCBinaryData *bytes,
	CUstreamBatchMemOpParams **opsp, uint32_t *np)
{
	CUstreamBatchMemOpParams op, *ops;
	size_t n = bytes->len / sizeof(op);
	CUresult result = CUDA_SUCCESS;

	if (!n || n > MEMOPS_MAX || bytes->len % sizeof(op))
		return CUDA_ERROR_INVALID_VALUE;
	ops = call_alloc(call, bytes->len);
	if (!ops)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memset(ops, 0, bytes->len);
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++) {
		memcpy(&op, bytes->data + i * sizeof(op), sizeof(op));
		result = copy_op(call, &op, &ops[i]);
	}
	*opsp = ops;
	*np = (uint32_t)n;
	return result;
}
