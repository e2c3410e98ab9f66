/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cuBLAS has as PTX for devices of compute capability 12: vector operations, a
 * dot product and a product of matrices
 */

#include <cublas_v2.h>

#include "runtime.h"

#define BLAS(_call)                                                                      \
	do {                                                                             \
		cublasStatus_t s_ = (_call);                                             \
		if (s_ != CUBLAS_STATUS_SUCCESS) {                                       \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #_call,   \
				cublasGetStatusName(s_));                                \
			exit(EXIT_FAILURE);                                              \
		}                                                                        \
	} while (0)

#define N 1000
#define SIDE 16

/* Small whole numbers: every sum below is exact in any order. */
static std::vector<float> numbers(int step)
{
	std::vector<float> values(N);

	for (int i = 0; i < N; i++)
		values[i] = (float)(i % step) - 2;
	return values;
}

static size_t differ(const float *device, const std::vector<float> &expected)
{
	std::vector<float> got(expected.size());
	size_t n = 0;

	CUDA(cudaMemcpy(got.data(), device, got.size() * 4, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < got.size(); i++)
		n += got[i] != expected[i];
	return n;
}

static std::vector<float> product(
	const std::vector<float> &a, const std::vector<float> &b)
{
	std::vector<float> c(SIDE * SIDE);

	for (int column = 0; column < SIDE; column++)
		for (int row = 0; row < SIDE; row++)
			for (int k = 0; k < SIDE; k++)
				c[column * SIDE + row] +=
					a[k * SIDE + row] * b[column * SIDE + k];
	return c;
}

int main()
{
	std::vector<float> x = numbers(7), y = numbers(5);
	const float two = 2, one = 1, zero = 0;
	float *device_x, *device_y, *device_c, dot = 0, expected = 0;
	cudaStream_t stream;
	cublasHandle_t handle;
	size_t n_wrong = 0;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc(&device_x, N * 4));
	CUDA(cudaMalloc(&device_y, N * 4));
	CUDA(cudaMalloc(&device_c, SIDE * SIDE * 4));
	CUDA(cudaMemcpy(device_x, x.data(), N * 4, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(device_y, y.data(), N * 4, cudaMemcpyHostToDevice));

	BLAS(cublasCreate(&handle));
	BLAS(cublasSaxpy(handle, N, &two, device_x, 1, device_y, 1));
	for (int i = 0; i < N; i++)
		y[i] += 2 * x[i];
	n_wrong += differ(device_y, y);

	/* In another stream, whose attributes the library queries. */
	BLAS(cublasSetStream(handle, stream));
	for (int i = 0; i < N; i++)
		expected += x[i] * y[i];
	BLAS(cublasSdot(handle, N, device_x, 1, device_y, 1, &dot));
	n_wrong += dot != expected;

	BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, SIDE, SIDE, SIDE, &one,
		device_x, SIDE, device_y, SIDE, &zero, device_c, SIDE));
	CUDA(cudaStreamSynchronize(stream));
	n_wrong += differ(device_c, product(x, y));

	BLAS(cublasSscal(handle, N, &two, device_x, 1));
	BLAS(cublasScopy(handle, N, device_x, 1, device_y, 1));
	CUDA(cudaStreamSynchronize(stream));
	for (float &value : x)
		value *= 2;
	n_wrong += differ(device_x, x);
	n_wrong += differ(device_y, x);
	BLAS(cublasDestroy(handle));
	return result("blas", 4 * N + SIDE * SIDE + 1, n_wrong);
}
