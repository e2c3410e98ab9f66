/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores the word after an array: miss. Exit status: 0 if that was tolerated, 1 if it was
 * a fault.
 */

#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>

static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			   ".visible .entry store(.param .u64 to) {\n"
			   ".reg .b64 %d; ld.param.u64 %d, [to];\n"
			   "st.global.u32 [%d], 1; ret; }\n";

static void must(CUresult result)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "miss: CUDA error %d\n", result);
	exit(2);
}

static CUresult store(CUfunction function, CUdeviceptr to)
{
	void *parameters[] = { &to };

	must(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	return cuCtxSynchronize();
}

int main(void)
{
	CUfunction function;
	CUcontext context;
	CUdeviceptr array;
	CUmodule module;
	CUresult result;

	must(cuInit(0));
	must(cuDevicePrimaryCtxRetain(&context, 0));
	must(cuCtxSetCurrent(context));
	must(cuModuleLoadData(&module, text));
	must(cuModuleGetFunction(&function, module, "store"));
	must(cuMemAlloc(&array, 100));
	must(store(function, array + 96));
	result = store(function, array + 100);
	if (result == CUDA_ERROR_ILLEGAL_ADDRESS)
		return 1;
	must(result);
	return 0;
}
