/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From cuInit to the first launch, asking all that a CUDA runtime asks, and small copies
 */

#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>

#define TRY(_call)                                                                       \
	do {                                                                             \
		CUresult r_ = (_call);                                                   \
		if (r_ != CUDA_SUCCESS) {                                                \
			printf("%s is %d\n", #_call, r_);                                \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

#define COPY_SIZE 4096
#define N_COPIES 256

extern const char kernels_ptx[];

static void ask(CUdevice device)
{
	unsigned int flags;
	int value, active;
	char name[256];
	size_t bytes;
	CUuuid uuid;

	TRY(cuDeviceGet(&device, device));
	TRY(cuDeviceGetName(name, sizeof(name), device));
	TRY(cuDeviceTotalMem(&bytes, device));
	TRY(cuDeviceGetUuid(&uuid, device));
	TRY(cuDeviceGetPCIBusId(name, sizeof(name), device));
	TRY(cuDevicePrimaryCtxGetState(device, &flags, &active));
	for (int i = 1; i <= 111; i++)
		TRY(cuDeviceGetAttribute(&value, (CUdevice_attribute)i, device));
}

/* A context and what is local of it. */
static CUcontext enter(void)
{
	unsigned int value;
	CUcontext context;
	CUdevice device;

	TRY(cuDevicePrimaryCtxRetain(&context, 0));
	TRY(cuCtxSetCurrent(context));
	TRY(cuCtxGetCurrent(&context));
	TRY(cuCtxGetDevice(&device));
	TRY(cuCtxGetFlags(&value));
	TRY(cuCtxGetApiVersion(context, &value));
	TRY(cuCtxPushCurrent(context));
	TRY(cuCtxPopCurrent(&context));
	return context;
}

int main(void)
{
	unsigned int value = 7, read[COPY_SIZE / sizeof(value)] = {};
	int version, n_devices, n = 1;
	CUfunction function;
	CUdeviceptr memory;
	CUmodule module;

	TRY(cuInit(0));
	TRY(cuDriverGetVersion(&version));
	TRY(cuDeviceGetCount(&n_devices));
	for (int i = 0; i < n_devices; i++)
		ask(i);
	enter();
	TRY(cuModuleLoadData(&module, kernels_ptx));
	TRY(cuModuleGetFunction(&function, module, "fill"));
	for (int i = 0; i < 16; i++)
		TRY(cuFuncGetAttribute(&version, (CUfunction_attribute)i, function));
	TRY(cuMemAlloc(&memory, sizeof(read)));
	for (int i = 0; i < 2; i++)
		TRY(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL,
			(void *[]){ &memory, &value, &n }, NULL));
	for (int i = 0; i < N_COPIES; i++)
		TRY(cuMemcpyDtoH(read, memory, sizeof(read)));
	printf("%u\n", read[0]);
	return 0;
}
