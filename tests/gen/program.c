/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program as people write it, compiled against our header only
 *
 * Base names lead to the newest ABI. Nothing here runs.
 */

#include <cuda.h>

CUresult copy_in(CUdeviceptr *address, const void *source, size_t size);
CUresult launch(CUfunction function, CUstream stream, void **params);

CUresult copy_in(CUdeviceptr *address, const void *source, size_t size)
{
	CUresult r = cuMemAlloc(address, size);

	if (r != CUDA_SUCCESS)
		return r;
	return cuMemcpyHtoD(*address, source, size);
}

CUresult launch(CUfunction function, CUstream stream, void **params)
{
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE };
	CUlaunchConfig config = {
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = stream,
		.attrs = &attribute,
		.numAttrs = 1,
	};
	CUcontext context;
	void *pfn;

	attribute.value.cooperative = 1;
	cuCtxCreate(&context, NULL, CU_CTX_SCHED_AUTO, 0);
	cuGetProcAddress("cuMemAlloc", &pfn, CUDA_VERSION, 0, NULL);
	return cuLaunchKernelEx(&config, function, params, NULL);
}
