/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of random calls: green contexts, and tensor maps
 */

#include <stdlib.h>
#include <string.h>

/* Inside the project, or as programs have it. */
#ifdef VGPU_CUDA_INTERNAL
#include "vgpu/cuda.h"
#else
#include <cuda.h>
#endif

#include "calls-graph.h"
#include "calls-green.h"
#include "calls.h"
#include "slots.h"

#define GROUPS 4u

static CUgreenCtx green_of(uint8_t x)
{
	return slot_get(SLOT_GREEN, x);
}

/* Of the second device: each program ends with a reset of that one, which frees what is
 * left in green contexts. */
#define DEVICE 1

void calls_green_create(uint8_t a, uint8_t b)
{
	CUdevResource whole, groups[GROUPS + 1];
	unsigned int n = 1 + a % GROUPS, picked = b % (GROUPS + 1);
	CUdevResourceDesc desc;
	CUgreenCtx made;
	CUresult result;

	memset(groups, 0, sizeof(groups));
	if (b & 0x80)
		result = cuGreenCtxGetDevResource(
			green_of(a), &whole, CU_DEV_RESOURCE_TYPE_SM);
	else
		result = cuDeviceGetDevResource(DEVICE, &whole, CU_DEV_RESOURCE_TYPE_SM);
	if (result)
		return;
	if (cuDevSmResourceSplitByCount(groups, &n, &whole, &groups[GROUPS],
		    a & 0x40 ? CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING : 0,
		    a >> 4 & 3))
		return;
	/* Some have not been filled in, or are joined. */
	if (cuDevResourceGenerateDesc(&desc, b & 0x40 ? groups : &groups[picked],
		    b & 0x40 ? 1 + picked : 1))
		return;
	if (!cuGreenCtxCreate(&made, desc, DEVICE, CU_GREEN_CTX_DEFAULT_STREAM))
		slot_put(SLOT_GREEN, a, made);
}

void calls_green_destroy(uint8_t a, uint8_t b)
{
	slot_destroy(SLOT_GREEN, a, b);
}

void calls_green_current(uint8_t a, uint8_t b)
{
	CUcontext context;
	CUgreenCtx found;
	unsigned long long id;

	if (cuCtxFromGreenCtx(&context, green_of(a)))
		return;
	switch (b % 8) {
	case 0:
		cuCtxPushCurrent_v2(context);
		break;
	case 1:
		cuCtxSynchronize_v2(context);
		break;
	case 2:
		cuCtxDestroy_v2(context);
		break;
	case 3:
		cuGreenCtxGetId(NULL, &id);
		cuStreamGetGreenCtx(calls_stream(b / 8), &found);
		cuStreamGetCtx_v2(calls_stream(b / 8), &context, &found);
		break;
	default:
		cuCtxSetCurrent(context);
		break;
	}
}

void calls_green_use(uint8_t a, uint8_t b)
{
	CUgreenCtx green = green_of(a);
	CUdevResource resource;
	CUstream made;

	switch (b % 4) {
	case 0:
		cuGreenCtxRecordEvent(green, slot_get(SLOT_EVENT, b / 4));
		break;
	case 1:
		cuGreenCtxWaitEvent(green, slot_get(SLOT_EVENT, b / 4));
		break;
	case 2:
		cuGreenCtxGetDevResource(green, &resource, CU_DEV_RESOURCE_TYPE_SM);
		break;
	default:
		if (!cuGreenCtxStreamCreate(&made, green, CU_STREAM_NON_BLOCKING, 0))
			slot_put(SLOT_STREAM, b / 4, made);
		break;
	}
}

void calls_tensor_use(uint8_t a, uint8_t b)
{
	cuuint64_t sizes[5] = { a + 1u, 32, 16, 8, 4 };
	cuuint64_t strides[4] = { 16ull << (b % 8), 8192, 131072, 1048576 };
	cuuint32_t box[5] = { 4, 1u + b, 1, 1, 1 },
		   steps[5] = { 1, 1, 1, 1, 1 + a % 16u };
	void *place = (void *)(uintptr_t)calls_place(a);
	int lower[3] = { -(b % 16), 0, 0 }, upper[3] = { a % 16, 0, 0 };
	CUtensorMap map;

	memset(&map, a, sizeof(map));
	if (b % 2)
		cuTensorMapEncodeTiled(&map, (CUtensorMapDataType)(a % 17), 1 + b % 6u,
			place, sizes, strides, box, steps,
			(CUtensorMapInterleave)(b / 2 % 4), (CUtensorMapSwizzle)(a % 8),
			CU_TENSOR_MAP_L2_PROMOTION_NONE,
			CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	else
		cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1 + b % 6u,
			place, sizes, strides, lower, upper, 1u + a, 1u + b, steps,
			CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
			CU_TENSOR_MAP_L2_PROMOTION_NONE,
			CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	cuTensorMapReplaceAddress(&map, place);
}
