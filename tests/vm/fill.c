/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses memory: of the shared memory, and of the device
 *
 *	fill PINNED DEVICE
 *
 * Both are in MiB; less of the first if no more can be had. The device writes all of it,
 * so that with softgpu the worker is the first to use each page. It says "filled P D" and
 * then calls until a call fails, says "code N" and exits with 0; or until SIGTERM.
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cuda.h>

#define MIB (1u << 20)
#define PAUSE_US 20000

static void expect(CUresult result, const char *call)
{
	if (result == CUDA_SUCCESS)
		return;
	printf("%s: code %d\n", call, result);
	exit(1);
}

/* Return: MiB that there were. */
static unsigned int fill_pinned(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		void *bytes;

		if (cuMemAllocHost(&bytes, MIB) != CUDA_SUCCESS)
			return i;
		expect(cuMemsetD8((CUdeviceptr)bytes, 0x55, MIB), "cuMemsetD8");
	}
	return n;
}

/* Return: the code of the call that failed, or CUDA_SUCCESS. */
static CUresult fill_device(unsigned int n, CUdeviceptr *lastp)
{
	CUresult result = CUDA_SUCCESS;

	for (unsigned int i = 0; result == CUDA_SUCCESS && i < n; i++) {
		result = cuMemAlloc(lastp, MIB);
		if (result == CUDA_SUCCESS)
			result = cuMemsetD8(*lastp, 0x55, MIB);
		if (result == CUDA_SUCCESS)
			result = cuCtxSynchronize();
	}
	return result;
}

int main(int argc, char **argv)
{
	CUdeviceptr last = 0;
	CUcontext context;
	CUdevice device;
	unsigned int n;
	CUresult result;

	if (argc != 3)
		return 2;
	expect(cuInit(0), "cuInit");
	expect(cuDeviceGet(&device, 0), "cuDeviceGet");
	expect(cuCtxCreate(&context, NULL, 0, device), "cuCtxCreate");
	n = fill_pinned((unsigned int)atoi(argv[1]));
	expect(cuMemAlloc(&last, 1), "cuMemAlloc");
	result = fill_device((unsigned int)atoi(argv[2]), &last);
	if (result == CUDA_SUCCESS)
		printf("filled %u %s\n", n, argv[2]);
	fflush(stdout);
	while (result == CUDA_SUCCESS) {
		usleep(PAUSE_US);
		result = cuMemsetD8(last, 0x66, 1);
		if (result == CUDA_SUCCESS)
			result = cuCtxSynchronize();
	}
	printf("code %d\n", result);
	return 0;
}
