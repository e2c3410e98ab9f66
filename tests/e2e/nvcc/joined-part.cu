/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of joined.cu: a function, in an object file
 */

__device__ int squared(int i)
{
	return i * i;
}
