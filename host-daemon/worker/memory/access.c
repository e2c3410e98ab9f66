/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access: the memory that a guest may pass to calls
 */

#include "vgpu/checked.h"
#include "worker/base/call.h"
#include "worker/base/ranges.h"
#include "worker/base/session.h"
#include "worker/memory/access.h"
#include "worker/memory/arena.h"
#include "worker/memory/mirror.h"

CUresult access_check(struct call *call, uint64_t address, uint64_t size)
{
	return ranges_cover(&call->session->ranges, address, size) ||
			       arena_covers(call->session, address, size) ||
			       mirror_covers(call->session, address, size)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult access_check_side(struct call *call, const struct access_side *side,
	uint64_t width, uint64_t height, uint64_t depth)
{
	uint64_t n_rows, size;

	if (!width || !height || !depth)
		return CUDA_SUCCESS;
	if ((side->pitch < width && (height > 1 || depth > 1)) ||
		(side->rows < height && depth > 1))
		return CUDA_ERROR_INVALID_VALUE;
	if (!vgpu_mul_u64(side->rows, depth - 1, &n_rows) ||
		!vgpu_add_u64(n_rows, height - 1, &n_rows) ||
		!vgpu_mul_u64(side->pitch, n_rows, &size) ||
		!vgpu_add_u64(size, width, &size))
		return CUDA_ERROR_INVALID_VALUE;
	return access_check(call, side->address, size);
}
