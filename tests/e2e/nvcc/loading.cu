/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with device code that it does not use: is it handed to the driver?
 */

#include "runtime.h"

__global__ void unused(int *out)
{
	*out = 1;
}

int main()
{
	int *device;

	CUDA(cudaMalloc(&device, sizeof(*device)));
	CUDA(cudaFree(device));
	return EXIT_SUCCESS;
}
