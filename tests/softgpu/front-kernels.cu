/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device code for the tests of the front end
 *
 * Compiled by clang without any CUDA header and by nvcc; what it computes does not
 * matter, what the compilers write for it does: parameters by value, static and
 * dynamic shared memory, constants with addresses, calls, recursion, local arrays,
 * divergence, atomics, double precision.
 */

#ifndef __CUDACC__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#endif
#ifdef __clang__
#define THREAD __nvvm_read_ptx_sreg_tid_x()
#define BARRIER() __nvvm_bar_sync(0)
#define ADD(_p, _v) __nvvm_atom_add_gen_i((_p), (_v))
#else
#define THREAD threadIdx.x
#define BARRIER() __syncthreads()
#define ADD(_p, _v) atomicAdd((_p), (_v))
#endif

struct values {
	int a[5];
	double d;
	char c;
};

struct node {
	int *p;
	char c;
	struct node *next;
};

typedef int (*callback)(int);

__constant__ float table[3] = { 1.0f, -2.5f, 1e30f };
__device__ int counter = 5;
__device__ int matrix[2][3] = { { 1 }, { 2, 3 } };
__device__ double real = 0.1;
__device__ struct node last = { &counter, 'l', 0 };
__device__ struct node first = { &matrix[1][2], 'f', &last };
__device__ const char *text = "hello";

static __device__ __attribute__((noinline)) int factorial(int n)
{
	return n ? n * factorial(n - 1) : 1;
}

static __device__ __attribute__((noinline)) int twice(int n)
{
	return 2 * n;
}

static __device__ __attribute__((noinline)) double weigh(struct values v, double x)
{
	return x * v.d + v.a[v.c & 3];
}

__device__ callback callbacks[2] = { factorial, twice };

extern "C" __global__ void everything(float *out, const int *in, int n, struct values v)
{
	__shared__ float tile[64];
	int t = THREAD, local[16], sum = 0;

	tile[t & 63] = out[t] * table[t % 3];
	BARRIER();
	for (int i = 0; i < n; i++)
		local[(i * t) & 15] = in[i];
	for (int i = 0; i < 16; i++)
		sum += local[i];
	switch (sum) {
	case 0:
		sum += 3;
		break;
	case 1:
		sum *= 7;
		break;
	case 2:
		sum ^= 5;
		break;
	case 3:
		sum <<= 3;
		break;
	case 4:
		sum /= 3;
		break;
	}
	ADD(&counter, callbacks[n & 1](sum));
	out[t] = tile[63 - (t & 63)] + (float)weigh(v, real) + matrix[1][t & 1] +
		 *first.next->p + text[t & 3];
}

extern "C" __global__ void add(const double *a, const double *b, double *c, unsigned n)
{
	unsigned i = THREAD;

	if (i < n)
		c[i] = a[i] / b[i] + (double)(long long)(a[i] * 3.0);
}
