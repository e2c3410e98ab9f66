/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recursion, virtual functions, function pointers, new and delete in device code
 */

#include <cstring>

#include "runtime.h"

#define N 256

static __host__ __device__ __noinline__ unsigned int ackermann(
	unsigned int m, unsigned int n)
{
	if (!m)
		return n + 1;
	return ackermann(m - 1, n ? ackermann(m, n - 1) : 1);
}

/* Quicksort on an array in local memory, then a sum that depends on the order. */
static __host__ __device__ __noinline__ void quicksort(int *a, int low, int high)
{
	int i = low, j = high, pivot = a[(low + high) / 2];

	while (i <= j) {
		while (a[i] < pivot)
			i++;
		while (a[j] > pivot)
			j--;
		if (i <= j) {
			int t = a[i];

			a[i++] = a[j];
			a[j--] = t;
		}
	}
	if (low < j)
		quicksort(a, low, j);
	if (i < high)
		quicksort(a, i, high);
}

static __host__ __device__ int sort_and_sum(int *a, int n)
{
	int sum = 0;

	quicksort(a, 0, n - 1);
	for (int i = 0; i < n; i++)
		sum = sum * 31 + a[i];
	return sum;
}

struct shape {
	__host__ __device__ virtual float area() const = 0;
	__host__ __device__ virtual int corners() const
	{
		return 0;
	}
	__host__ __device__ virtual ~shape()
	{
	}
};

struct circle : shape {
	float r;
	__host__ __device__ explicit circle(float radius) : r(radius)
	{
	}
	__host__ __device__ float area() const override
	{
		return 3.0f * r * r;
	}
};

struct box : shape {
	float a, b;
	__host__ __device__ box(float width, float height) : a(width), b(height)
	{
	}
	__host__ __device__ float area() const override
	{
		return a * b;
	}
	__host__ __device__ int corners() const override
	{
		return 4;
	}
};

/* A tree of shapes: a virtual function that calls itself through others. */
struct group : shape {
	shape *left, *right;
	__host__ __device__ group(shape *l, shape *r) : left(l), right(r)
	{
	}
	__host__ __device__ float area() const override
	{
		return left->area() + right->area();
	}
	__host__ __device__ int corners() const override
	{
		return left->corners() + right->corners();
	}
	__host__ __device__ ~group() override
	{
		delete left;
		delete right;
	}
};

static __host__ __device__ __noinline__ shape *make(unsigned int seed, int depth)
{
	if (depth && seed % 3 == 2)
		return new group(make(seed / 3, depth - 1), make(seed / 5, depth - 1));
	if (seed % 2)
		return new circle((float)(seed % 7));
	return new box((float)(seed % 5), (float)(seed % 11));
}

typedef int (*function)(int);

static __host__ __device__ int twice(int x)
{
	return 2 * x;
}

static __host__ __device__ int square(int x)
{
	return x * x;
}

static __host__ __device__ int negate(int x)
{
	return -x;
}

static __device__ function device_table[] = { twice, square, negate };
static function host_table[] = { twice, square, negate };

struct results {
	unsigned int ackermann;
	int sorted, corners, called;
	float area;
};

static __host__ __device__ void compute(
	unsigned int i, const function *table, struct results *r)
{
	int numbers[16];
	shape *s = make(i * 2654435761u >> 8, 4);

	for (unsigned int k = 0; k < 16; k++)
		numbers[k] = (int)((i + 1) * 2654435761u * (k + 3) >> 20);
	r->ackermann = ackermann(i % 3, i % 5);
	r->sorted = sort_and_sum(numbers, 16);
	r->corners = s->corners();
	r->area = s->area();
	r->called = table[i % 3](table[i / 3 % 3]((int)i));
	delete s;
}

static __global__ void kernel(struct results *results)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	compute(i, device_table, &results[i]);
}

int main()
{
	std::vector<struct results> got(N);
	struct results *device, want;
	size_t n_wrong = 0;

	memset(&want, 0, sizeof(want));
	CUDA(cudaDeviceSetLimit(cudaLimitStackSize, 16384));
	CUDA(cudaMalloc(&device, N * sizeof(*device)));
	CUDA(cudaMemset(device, 255, N * sizeof(*device)));
	kernel<<<N / 64, 64>>>(device);
	CUDA(cudaGetLastError());
	CUDA(cudaMemcpy(got.data(), device, N * sizeof(*device), cudaMemcpyDeviceToHost));
	for (unsigned int i = 0; i < N; i++) {
		compute(i, host_table, &want);
		n_wrong += memcmp(&got[i], &want, sizeof(want)) != 0;
	}
	CUDA(cudaFree(device));
	return result("calls", N, n_wrong);
}
