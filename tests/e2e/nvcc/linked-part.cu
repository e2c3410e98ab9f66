/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other part: functions and variables that linked.cu uses
 */

#include "linked.h"
#include "runtime.h"

__device__ unsigned int offset = 1;
__constant__ unsigned int factors[4];

__host__ __device__ unsigned int mixed(unsigned int i)
{
	return (i ^ i << 7) * 2654435761u;
}

static __device__ unsigned int counter;
extern __shared__ unsigned int words[];

__device__ static unsigned int negated(unsigned int x)
{
	return ~x;
}

__device__ static unsigned int doubled(unsigned int x)
{
	return twice(x);
}

/* Device functions by their addresses, one of them declared before. */
__device__ operation operations[N_OPERATIONS] = { negated, mixed, doubled };

__device__ void reverse(unsigned int n)
{
	unsigned int x = words[n - 1 - threadIdx.x];

	__syncthreads();
	words[threadIdx.x] = x;
	__syncthreads();
}

__device__ unsigned int count_there(unsigned int n)
{
	return atomicAdd(&counter, n);
}

__device__ unsigned int square::area() const
{
	return size * size;
}

void set_factors(const unsigned int *values)
{
	CUDA(cudaMemcpyToSymbol(factors, values, sizeof(factors)));
}
