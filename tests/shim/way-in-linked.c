/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is linked to libcuda.so.1 (DT_NEEDED); prints how many devices there are
 */

#include <stdio.h>

#include <cuda.h>

int main(void)
{
	CUresult result;
	int count;

	result = cuInit(0);
	if (result == CUDA_SUCCESS)
		result = cuDeviceGetCount(&count);
	if (result != CUDA_SUCCESS) {
		fprintf(stderr, "result %d\n", (int)result);
		return 4;
	}
	printf("devices=%d\n", count);
	return 0;
}
