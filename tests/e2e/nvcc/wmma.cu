/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices by the warp's matrix instructions, against sums on the host
 *
 * C++ fragments of several types (mma.h), with operations on their elements, and mma with
 * ldmatrix as libraries write them, in assembly.
 */

#include <cmath>
#include <cstdint>
#include <cstring>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>

#include "runtime.h"

using namespace nvcuda;

/* D = alpha A B + beta C; A is by rows, B by columns. */
#define M 64
#define N 96
#define K 80

struct host {
	std::vector<double> a, b, c;
	size_t n_wrong;
};

/* Small integers, of which every sum is exact in every type. */
static void fill(host *h)
{
	h->a.resize(M * K);
	h->b.resize(K * N);
	h->c.resize(M * N);
	for (size_t i = 0; i < h->a.size(); i++)
		h->a[i] = (double)(i * 7 % 13) - 6;
	for (size_t i = 0; i < h->b.size(); i++)
		h->b[i] = (double)(i * 5 % 11) - 5;
	for (size_t i = 0; i < h->c.size(); i++)
		h->c[i] = (double)(i * 3 % 17) - 8;
	h->n_wrong = 0;
}

static double expected(const host *h, int row, int column, double alpha, double beta)
{
	double sum = 0;

	for (int k = 0; k < K; k++)
		sum += h->a[row * K + k] * h->b[column * K + k];
	return alpha * sum + beta * h->c[row * N + column];
}

template <typename T> static T *upload(const std::vector<double> &from)
{
	std::vector<T> values(from.size());
	T *to;

	for (size_t i = 0; i < from.size(); i++)
		values[i] = (T)(float)from[i];
	CUDA(cudaMalloc(&to, from.size() * sizeof(T)));
	CUDA(cudaMemcpy(
		to, values.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
	return to;
}

template <typename T>
static void compare(const char *what, host *h, const T *d, double alpha, double beta)
{
	std::vector<T> values(M * N);
	size_t n_wrong = 0;

	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(values.data(), d, M * N * sizeof(T), cudaMemcpyDeviceToHost));
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++)
			n_wrong += (double)(float)values[i * N + j] !=
				   expected(h, i, j, alpha, beta);
	if (n_wrong)
		fprintf(stderr, "%s: %zu of %d wrong\n", what, n_wrong, M * N);
	h->n_wrong += n_wrong;
}

/* A warp for each tile of D, which has m by n elements; through shared memory if told. */
template <int m, int n, int k, typename T, typename Accumulator, typename Precision>
__global__ void fragments(
	const T *a, const T *b, const Accumulator *c, Accumulator *d, int alpha, int beta)
{
	__shared__ __align__(32) T tile[m * k];
	wmma::fragment<wmma::matrix_a, m, n, k, Precision, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, m, n, k, Precision, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, m, n, k, Accumulator> sums, fc;
	int row = blockIdx.y * m, column = blockIdx.x * n;

	wmma::fill_fragment(sums, (Accumulator)0);
	for (int at = 0; at < K; at += k) {
		__syncwarp();
		for (int i = threadIdx.x; i < m * k; i += 32)
			tile[i] = a[(row + i / k) * K + at + i % k];
		__syncwarp();
		wmma::load_matrix_sync(fa, tile, k);
		wmma::load_matrix_sync(fb, b + column * K + at, K);
		wmma::mma_sync(sums, fa, fb, sums);
	}
	wmma::load_matrix_sync(fc, c + row * N + column, N, wmma::mem_row_major);
	for (int i = 0; i < sums.num_elements; i++)
		sums.x[i] = (Accumulator)alpha * sums.x[i] + (Accumulator)beta * fc.x[i];
	wmma::store_matrix_sync(d + row * N + column, sums, N, wmma::mem_row_major);
}

template <int m, int n, int k, typename T, typename Accumulator, typename Precision = T>
static void run_fragments(const char *what, host *h)
{
	T *a = upload<T>(h->a), *b = upload<T>(h->b);
	Accumulator *c = upload<Accumulator>(h->c), *d;

	CUDA(cudaMalloc(&d, M * N * sizeof(*d)));
	fragments<m, n, k, T, Accumulator, Precision>
		<<<dim3(N / n, M / m), 32>>>(a, b, c, d, 2, -3);
	CUDA(cudaGetLastError());
	compare(what, h, d, 2, -3);
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
	CUDA(cudaFree(c));
	CUDA(cudaFree(d));
}

/* 16 by 8 elements of D for each warp, operands through shared memory. */
__global__ void assembly(const __half *a, const __half *b, float *d)
{
	__shared__ __align__(16) __half as[16 * 16], bs[8 * 16];
	int lane = threadIdx.x, row = blockIdx.y * 16, column = blockIdx.x * 8;
	float sums[4] = {};
	uint32_t fa[4], fb[2];

	for (int at = 0; at < K; at += 16) {
		__syncwarp();
		for (int i = lane; i < 256; i += 32)
			as[i] = a[(row + i / 16) * K + at + i % 16];
		for (int i = lane; i < 128; i += 32)
			bs[i] = b[(column + i / 16) * K + at + i % 16];
		__syncwarp();
		asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
			     "{%0, %1, %2, %3}, [%4];"
			     : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
			     : "r"((uint32_t)__cvta_generic_to_shared(
				     as + lane % 16 * 16 + lane / 16 * 8)));
		asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
			     : "=r"(fb[0]), "=r"(fb[1])
			     : "r"((uint32_t)__cvta_generic_to_shared(
				     bs + lane % 8 * 16 + lane / 8 % 2 * 8)));
		asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
			     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
			     "{%0, %1, %2, %3};"
			     : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
			     : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]),
			     "r"(fb[1]));
	}
	for (int i = 0; i < 4; i++)
		d[(row + lane / 4 + i / 2 * 8) * N + column + lane % 4 * 2 + i % 2] =
			sums[i];
}

static void run_assembly(host *h)
{
	__half *a = upload<__half>(h->a), *b = upload<__half>(h->b);
	float *d;

	CUDA(cudaMalloc(&d, M * N * sizeof(*d)));
	assembly<<<dim3(N / 8, M / 16), 32>>>(a, b, d);
	CUDA(cudaGetLastError());
	compare("mma", h, d, 1, 0);
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
	CUDA(cudaFree(d));
}

/* All floats of 8 bits, as half and back, by the functions of cuda_fp8.h. */
__global__ void convert(uint16_t *halves, uint8_t *back)
{
	int i = threadIdx.x;
	__nv_fp8_interpretation_t kind = blockIdx.x ? __NV_E5M2 : __NV_E4M3;
	__half_raw h = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)i, kind);

	halves[blockIdx.x * 256 + i] = h.x;
	back[blockIdx.x * 256 + i] = __nv_cvt_halfraw_to_fp8(h, __NV_SATFINITE, kind);
}

static size_t count_wrong_conversions()
{
	std::vector<uint16_t> halves(512);
	std::vector<uint8_t> back(512);
	uint16_t *device_halves;
	uint8_t *device_back;
	size_t n_wrong = 0;

	CUDA(cudaMalloc(&device_halves, 1024));
	CUDA(cudaMalloc(&device_back, 512));
	convert<<<2, 256>>>(device_halves, device_back);
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(halves.data(), device_halves, 1024, cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(back.data(), device_back, 512, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 512; i++) {
		int bits = i % 256, part = bits & 127;
		bool wide = i >= 256, infinite = wide && part == 0x7c;
		bool nan = wide ? part > 0x7c : part == 0x7f;

		/* e5m2 is the upper half of f16; the largest is instead of infinity. */
		if (wide && !nan)
			n_wrong += halves[i] != bits << 8;
		n_wrong += back[i] != (nan ? 0x7f : infinite ? bits - 1 : bits);
	}
	CUDA(cudaFree(device_halves));
	CUDA(cudaFree(device_back));
	return n_wrong;
}

int main()
{
	host h;

	fill(&h);
	run_fragments<16, 16, 16, __half, float>("half", &h);
	run_fragments<32, 8, 16, __half, float>("half, 32 by 8", &h);
	run_fragments<8, 32, 16, __half, float>("half, 8 by 32", &h);
	run_fragments<16, 16, 16, __half, __half>("half, sums of half", &h);
	run_fragments<16, 16, 16, signed char, int>("signed char", &h);
	run_fragments<32, 8, 16, signed char, int>("signed char, 32 by 8", &h);
	run_fragments<16, 16, 16, __nv_bfloat16, float>("bfloat16", &h);
	run_fragments<16, 16, 8, float, float, wmma::precision::tf32>("tf32", &h);
	run_fragments<8, 8, 4, double, double>("double", &h);
	run_assembly(&h);
	h.n_wrong += count_wrong_conversions();
	return result("wmma", 10 * M * N + 512, h.n_wrong);
}
