/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C = A * B in tiles of shared memory; small integers, so the result is exact
 */

#include "runtime.h"

#define TILE 16

__global__ void multiply(const float *a, const float *b, float *c, int n)
{
	__shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
	int x = threadIdx.x, y = threadIdx.y;
	int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
	float sum = 0;

	for (int k = 0; k < n; k += TILE) {
		tile_a[y][x] = a[row * n + k + x];
		tile_b[y][x] = b[(k + y) * n + column];
		__syncthreads();
#pragma unroll
		for (int i = 0; i < TILE; i++)
			sum += tile_a[y][i] * tile_b[i][x];
		__syncthreads();
	}
	c[row * n + column] = sum;
}

int main()
{
	const int n = 256;
	std::vector<float> a(n * n), b(n * n), c(n * n);
	size_t size = n * n * sizeof(float), n_wrong = 0;
	float *da, *db, *dc;

	for (int i = 0; i < n * n; i++) {
		a[i] = i * 7 % 13 - 6;
		b[i] = i * 5 % 11 - 5;
	}
	CUDA(cudaMalloc(&da, size));
	CUDA(cudaMalloc(&db, size));
	CUDA(cudaMalloc(&dc, size));
	CUDA(cudaMemcpy(da, a.data(), size, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(db, b.data(), size, cudaMemcpyHostToDevice));
	multiply<<<dim3(n / TILE, n / TILE), dim3(TILE, TILE)>>>(da, db, dc, n);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(c.data(), dc, size, cudaMemcpyDeviceToHost));
	for (int row = 0; row < n; row++)
		for (int column = 0; column < n; column++) {
			float sum = 0;

			for (int k = 0; k < n; k++)
				sum += a[row * n + k] * b[k * n + column];
			n_wrong += c[row * n + column] != sum;
		}
	return result("matrixMul", n * n, n_wrong);
}
