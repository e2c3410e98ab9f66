/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of the end-to-end tests and of the demo
 */

#include "device.h"

extern "C" {

__device__ int answer = 42;
__device__ unsigned int table[64];
__constant__ float scale = 1.0f;

__global__ void vector_add(const float *a, const float *b, float *c, int n)
{
	int i = global_x();

	if (i < n)
		c[i] = a[i] + b[i];
}

#define TILE 16

/* C = A * B for square matrices whose size is a multiple of the tile. */
__global__ void matrix_mul(const float *a, const float *b, float *c, int n)
{
	__shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
	int x = thread_x(), y = thread_y();
	int row = block_y() * TILE + y, column = block_x() * TILE + x;
	float sum = 0;

	for (int k = 0; k < n; k += TILE) {
		tile_a[y][x] = a[row * n + k + x];
		tile_b[y][x] = b[(k + y) * n + column];
		barrier();
		for (int i = 0; i < TILE; i++)
			sum += tile_a[y][i] * tile_b[i][x];
		barrier();
	}
	c[row * n + column] = sum;
}

/* Adds all of `in` to *out: shuffles within a warp, shared memory within a block, an
 * atomic over the grid. */
__global__ void reduce(const int *in, int *out, int n)
{
	__shared__ int partial[32];
	int sum = 0;

	for (int i = global_x(); i < n; i += grid_size_x() * block_size_x())
		sum += in[i];
	for (int offset = 16; offset; offset /= 2)
		sum += __nvvm_shfl_sync_down_i32(0xffffffff, sum, offset, 31);
	if (thread_x() % 32 == 0)
		partial[thread_x() / 32] = sum;
	barrier();
	if (thread_x() < 32) {
		sum = thread_x() < block_size_x() / 32 ? partial[thread_x()] : 0;
		for (int offset = 16; offset; offset /= 2)
			sum += __nvvm_shfl_sync_down_i32(0xffffffff, sum, offset, 31);
		if (thread_x() == 0)
			__atomic_fetch_add(out, sum, __ATOMIC_RELAXED);
	}
}

/* Counts byte values, first per block in shared memory, then in all. */
__global__ void histogram(const unsigned char *in, unsigned int *bins, int n)
{
	__shared__ unsigned int local[256];

	for (int i = thread_x(); i < 256; i += block_size_x())
		local[i] = 0;
	barrier();
	for (int i = global_x(); i < n; i += grid_size_x() * block_size_x())
		__atomic_fetch_add(&local[in[i]], 1, __ATOMIC_RELAXED);
	barrier();
	for (int i = thread_x(); i < 256; i += block_size_x())
		__atomic_fetch_add(&bins[i], local[i], __ATOMIC_RELAXED);
}

__global__ void fill(unsigned int *out, unsigned int value, int n)
{
	int i = global_x();

	if (i < n)
		out[i] = value;
}

/* x = 3 x + 1, `rounds` times: the order of launches shows in the result. */
__global__ void step(unsigned int *x, int rounds)
{
	unsigned int value = *x;

	for (int i = 0; i < rounds; i++)
		value = 3 * value + 1;
	*x = value;
}

/* Parameters of every size, so that their layout has holes. */
__global__ void pack(char a, double b, short c, int d, float e, long long f, double *out)
{
	out[0] = a, out[1] = b, out[2] = c, out[3] = d, out[4] = e, out[5] = f;
}

__global__ void read_globals(int *out)
{
	out[0] = answer;
	out[1] = table[global_x() % 64];
	out[2] = (int)(scale * 1000);
}

__global__ void store_at(unsigned int *address)
{
	if (block_x() == 1 && thread_x() == 5)
		*address = 1;
}

__global__ void dynamic_shared(unsigned int *out, int n)
{
	extern __shared__ unsigned int scratch[];
	int i = thread_x();

	scratch[i] = i * i;
	barrier();
	out[i] = scratch[n - 1 - i];
}
}
