/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other part: a function and variables that linked.cu uses
 */

#include "linked.h"
#include "runtime.h"

__device__ unsigned int offset = 1;
__constant__ unsigned int factors[4];

__host__ __device__ unsigned int mixed(unsigned int i)
{
	return (i ^ i << 7) * 2654435761u;
}

void set_factors(const unsigned int *values)
{
	CUDA(cudaMemcpyToSymbol(factors, values, sizeof(factors)));
}
