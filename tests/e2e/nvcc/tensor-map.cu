/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor map on its way into kernels: as a parameter that stays where it is, and in
 * constant memory
 */

#include <cstring>

#include <cuda.h>

#include "runtime.h"

typedef CUresult (*encode_fn)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
	const cuuint64_t *, const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
	CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
	CUtensorMapFloatOOBfill);

__constant__ CUtensorMap constant_map;

__global__ void reads(const __grid_constant__ CUtensorMap map, unsigned long long *out)
{
	const unsigned long long *from = (const unsigned long long *)&map;
	const unsigned long long *other = (const unsigned long long *)&constant_map;

	out[threadIdx.x] = from[threadIdx.x];
	out[16 + threadIdx.x] = other[threadIdx.x];
}

int main()
{
	const cuuint64_t sizes[2] = { 1024, 512 }, strides[1] = { 4096 };
	const cuuint32_t box[2] = { 32, 8 }, steps[2] = { 1, 1 };
	cudaDriverEntryPointQueryResult found;
	unsigned long long *out, copies[32];
	alignas(64) CUtensorMap map;
	size_t n_wrong = 0;
	encode_fn encode;
	void *pointer;
	float *memory;
	CUresult r;

	CUDA(cudaMalloc(&memory, 2 << 20));
	CUDA(cudaMalloc(&out, sizeof(copies)));
	CUDA(cudaGetDriverEntryPointByVersion(
		"cuTensorMapEncodeTiled", &pointer, 12000, cudaEnableDefault, &found));
	if (found != cudaDriverEntryPointSuccess)
		return EXIT_FAILURE;
	encode = (encode_fn)pointer;
	memset(&map, 0, sizeof(map));
	r = encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, memory, sizes, strides, box,
		steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	if (r != CUDA_SUCCESS) {
		fprintf(stderr, "cuTensorMapEncodeTiled: %d\n", r);
		return EXIT_FAILURE;
	}
	CUDA(cudaMemcpyToSymbol(constant_map, &map, sizeof(map)));
	reads<<<1, 16>>>(map, out);
	CUDA(cudaMemcpy(copies, out, sizeof(copies), cudaMemcpyDeviceToHost));
	n_wrong += memcmp(copies, &map, sizeof(map)) != 0;
	n_wrong += memcmp(copies + 16, &map, sizeof(map)) != 0;
	/* It says something. */
	memset(copies, 0, sizeof(copies));
	n_wrong += memcmp(copies, &map, sizeof(map)) == 0;
	return result("tensor maps", 2, n_wrong);
}
