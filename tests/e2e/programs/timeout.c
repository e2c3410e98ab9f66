/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that spins until a word changes: "endless" never sets the word, and expects
 * error 702, and the same for every later call; "short" sets it before
 */

#include <stdio.h>
#include <string.h>

#include <cuda.h>

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry spin(.param .u64 p) { .reg .pred %p; .reg .b32 %r<3>;\n"
	".reg .b64 %rd; ld.param.u64 %rd, [p];\n"
	"L: ld.volatile.global.u32 %r1, [%rd]; setp.eq.u32 %p, %r1, 0; @%p bra L;\n"
	"add.u32 %r1, %r1, 1; st.global.u32 [%rd], %r1; ret; }\n";

static int is(CUresult r, CUresult want, const char *what)
{
	if (r != want)
		fprintf(stderr, "%s gives %d, not %d\n", what, r, want);
	return r != want;
}

int main(int argc, char **argv)
{
	int endless = argc > 1 && !strcmp(argv[1], "endless"), wrong = 0;
	CUresult want = endless ? CUDA_ERROR_LAUNCH_TIMEOUT : CUDA_SUCCESS;
	unsigned int word = !endless;
	CUdeviceptr memory = 0;
	CUfunction spin;
	CUcontext context;
	CUmodule module;
	CUdevice device;
	void *params[] = { &memory };

	wrong += is(cuInit(0), 0, "cuInit");
	wrong += is(cuDeviceGet(&device, 0), 0, "cuDeviceGet");
	wrong += is(cuDevicePrimaryCtxRetain(&context, device), 0, "retaining");
	wrong += is(cuCtxSetCurrent(context), 0, "cuCtxSetCurrent");
	wrong += is(cuModuleLoadData(&module, ptx), 0, "loading");
	wrong += is(cuModuleGetFunction(&spin, module, "spin"), 0, "finding");
	wrong += is(cuMemAlloc(&memory, sizeof(word)), 0, "cuMemAlloc");
	wrong += is(cuMemcpyHtoD(memory, &word, sizeof(word)), 0, "cuMemcpyHtoD");
	if (wrong)
		return 1;
	wrong += is(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), 0,
		"launching");
	wrong += is(cuCtxSynchronize(), want, "waiting");
	wrong += is(cuMemcpyDtoH(&word, memory, sizeof(word)), want, "reading back");
	return wrong || (!endless && word != 2);
}
