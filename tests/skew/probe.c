/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the result of a call that a later release adds, between others that have to work
 */

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 65536u

#define MUST(_call)                                                                      \
	do {                                                                             \
		CUresult r_ = (_call);                                                   \
		if (r_ != CUDA_SUCCESS) {                                                \
			printf("%s is %d\n", #_call, r_);                                \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

static void copy_there_and_back(void)
{
	static unsigned char from[SIZE], to[SIZE];
	CUdeviceptr memory;

	for (size_t i = 0; i < SIZE; i++)
		from[i] = (unsigned char)(i * 7);
	MUST(cuMemAlloc(&memory, SIZE));
	MUST(cuMemcpyHtoD(memory, from, SIZE));
	MUST(cuMemcpyDtoH(to, memory, SIZE));
	MUST(cuMemFree(memory));
	if (memcmp(from, to, SIZE)) {
		puts("the bytes differ");
		exit(1);
	}
}

int main(void)
{
	size_t free = 0, total = 0;
	CUcontext context;
	CUdevice device;

	MUST(cuInit(0));
	MUST(cuDeviceGet(&device, 0));
	MUST(cuDevicePrimaryCtxRetain(&context, device));
	MUST(cuCtxSetCurrent(context));
	copy_there_and_back();
	printf("later call: %d\n", cuMemGetInfo(&free, &total));
	/* Refused twice, and the session goes on. */
	printf("later call: %d\n", cuMemGetInfo(&free, &total));
	copy_there_and_back();
	MUST(cuCtxSynchronize());
	MUST(cuDevicePrimaryCtxRelease(device));
	return 0;
}
