/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that stores where nothing is: the error's code, that it sticks, and that a
 * reset heals the device
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
	CUDA(cudaDeviceReset());
	cudaGetLastError();
	CUDA(cudaMalloc(&p, 4));
	store<<<1, 1>>>(p, 7);
	CUDA(cudaMemcpy(&value, p, 4, cudaMemcpyDeviceToHost));
	n_wrong += value != 7;
	return result("fault", 5, n_wrong);
}
