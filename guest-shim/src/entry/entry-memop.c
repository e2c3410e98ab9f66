/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: words that streams write and wait for
 */

#include "vgpu/g-driver.pb-c.h"

#include "memory/range.h"
#include "process/call.h"

/* As many as the API takes at once. */
#define OPS_MAX 255u

/* Whether the words of an operation are the program's; which operations and flags there
 * are is the driver's affair. */
static bool has_good_address(const CUstreamBatchMemOpParams *op)
{
	switch (op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return shim_range_covers(op->writeValue.address, 4);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return shim_range_covers(op->writeValue.address, 8);
	default:
		return true;
	}
}

CUresult shim_cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
	CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	Vgpu__CuStreamBatchMemOpV2Request request =
		VGPU__CU_STREAM_BATCH_MEM_OP_V2_REQUEST__INIT;
	/* The caller needs the driver's refusals. */
	struct shim_call call = {
		.id = VGPU_CALL_cuStreamBatchMemOp_v2,
		.wants_result = true,
	};

	if (!paramArray || !count || count > OPS_MAX)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	for (unsigned int i = 0; i < count; i++)
		if (!has_good_address(&paramArray[i]))
			return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.stream = (uint64_t)(uintptr_t)stream;
	request.count = count;
	request.flags = flags;
	request.ops.data = (uint8_t *)paramArray;
	request.ops.len = count * sizeof(*paramArray);
	return shim_call_async(&call, &request.base, stream);
}
