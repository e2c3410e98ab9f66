/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: words that streams write and wait for
 */

#include "vgpu/g-driver.pb-c.h"

#include "entry/memop.h"
#include "memory/range.h"
#include "process/call.h"

static bool has_good_address(const CUstreamBatchMemOpParams *op)
{
	bool is_denied;

	switch (op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return shim_range_holds(op->writeValue.address, 4, &is_denied);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return shim_range_holds(op->writeValue.address, 8, &is_denied);
	default:
		return true;
	}
}

bool shim_memops_are_valid(const CUstreamBatchMemOpParams *ops, unsigned int n)
{
	if (!ops || !n || n > SHIM_MEMOPS_MAX)
		return false;
	for (unsigned int i = 0; i < n; i++)
		if (!has_good_address(&ops[i]))
			return false;
	return true;
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

	if (!shim_memops_are_valid(paramArray, count))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.stream = (uint64_t)(uintptr_t)stream;
	request.count = count;
	request.flags = flags;
	request.ops.data = (uint8_t *)paramArray;
	request.ops.len = count * sizeof(*paramArray);
	return shim_call_async(&call, &request.base, stream);
}
