/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that stores where nothing is: the error's code, and that it sticks, also to
 * a reset: CUDA has such a process end
 */

#include "runtime.h"

__global__ void store(int *p, int value)
{
	*p = value;
}

int main()
{
	size_t n_wrong = 0;
	int *p, value = 0;

	CUDA(cudaMalloc(&p, 4));
	store<<<1, 1>>>((int *)0x10, 1);
	n_wrong += cudaDeviceSynchronize() != cudaErrorIllegalAddress;
	n_wrong += cudaMemcpy(&value, p, 4, cudaMemcpyDeviceToHost) !=
		   cudaErrorIllegalAddress;
	n_wrong += cudaGetLastError() != cudaErrorIllegalAddress;
	n_wrong += cudaMalloc(&p, 4) != cudaErrorIllegalAddress;
	n_wrong += cudaDeviceReset() != cudaErrorIllegalAddress;
	return result("fault", 5, n_wrong);
}
