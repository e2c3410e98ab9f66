/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program in steps, for a test that looks at its worker between them: a context and a
 * copy, a launch of one block, the end. A line on stdin starts the next step, a line on
 * stdout says that it is done.
 */

#include <stdio.h>

#include <cuda.h>

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry store(.param .u64 p) { .reg .b64 %rd;\n"
			  "ld.param.u64 %rd, [p]; st.global.u32 [%rd], 6; ret; }\n";

static int done(CUresult r)
{
	if (r)
		fprintf(stderr, "CUDA error %d\n", r);
	printf("%d\n", r);
	fflush(stdout);
	return getchar() == EOF || r;
}

static CUresult begin(CUdeviceptr *memory, CUfunction *store)
{
	unsigned int word = 1;
	CUcontext context;
	CUmodule module;
	CUresult r = cuInit(0);

	if (!r)
		r = cuDevicePrimaryCtxRetain(&context, 0);
	if (!r)
		r = cuCtxSetCurrent(context);
	if (!r)
		r = cuModuleLoadData(&module, ptx);
	if (!r)
		r = cuModuleGetFunction(store, module, "store");
	if (!r)
		r = cuMemAlloc(memory, sizeof(word));
	if (!r)
		r = cuMemcpyHtoD(*memory, &word, sizeof(word));
	return r;
}

int main(void)
{
	unsigned int word = 0;
	CUdeviceptr memory = 0;
	CUfunction store;
	void *params[] = { &memory };
	CUresult r = begin(&memory, &store);

	if (done(r))
		return 1;
	r = cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
	if (!r)
		r = cuMemcpyDtoH(&word, memory, sizeof(word));
	if (done(r))
		return 1;
	return word != 6;
}
