/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relocatable device code (nvcc -rdc=true), with which the library of the device runtime
 * is linked: virtual functions of the types that functions of that library have, new and
 * delete in kernels
 */

#include "runtime.h"

#define N 64

/* clang-format off */
struct shape {
	__device__ virtual ~shape() {}
	/* As cudaGetDevice(int *) and its kind, seen as PTX: one address, one number. */
	__device__ virtual int corners() = 0;
	__device__ virtual int area() = 0;
};

struct square : shape {
	int side;

	__device__ square(int side) : side(side) {}
	__device__ int corners() override { return 4; }
	__device__ int area() override { return side * side; }
};

struct triangle : shape {
	int base, height;

	__device__ triangle(int base, int height) : base(base), height(height) {}
	__device__ int corners() override { return 3; }
	__device__ int area() override { return base * height / 2; }
};
/* clang-format on */

__device__ shape *shapes[N];

__global__ void make()
{
	int i = threadIdx.x;

	if (i % 2)
		shapes[i] = new square(i);
	else
		shapes[i] = new triangle(i, 3);
}

__global__ void measure(int *out)
{
	shape *s = shapes[threadIdx.x];

	out[threadIdx.x] = 1000 * s->area() + s->corners();
	delete s;
}

static int expected(int i)
{
	return i % 2 ? 1000 * i * i + 4 : 1000 * (i * 3 / 2) + 3;
}

int main()
{
	int *device, host[N];
	size_t n_wrong = 0;

	CUDA(cudaMalloc(&device, sizeof(host)));
	make<<<1, N>>>();
	CUDA(cudaGetLastError());
	measure<<<1, N>>>(device);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		n_wrong += host[i] != expected(i);
	return result("relocatable", N, n_wrong);
}
