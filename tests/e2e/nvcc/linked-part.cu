/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other part: a function and a variable that linked.cu uses
 */

#include "linked.h"

__device__ unsigned int offset = 1;

__host__ __device__ unsigned int mixed(unsigned int i)
{
	return (i ^ i << 7) * 2654435761u;
}
