/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of joined.cu: kernels, as PTX
 */

extern __device__ int squared(int i);

__global__ static void child(int *out)
{
	out[threadIdx.x] = squared(threadIdx.x) + 1;
}

extern "C" __global__ void parent(int *out)
{
	child<<<1, 64>>>(out);
	out[64] = cudaGetErrorString(cudaGetLastError())[0];
}
