/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered memory through the runtime: an vector that two streams copy to the
 * device and back in chunks, and that a kernel then changes in place
 */

#include "runtime.h"

enum { N = 1 << 18, CHUNKS = 8, PER_CHUNK = N / CHUNKS, BLOCK = 256, STREAMS = 2 };

__global__ void add_index(unsigned int *data, unsigned int first, unsigned int n)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] += first + i;
}

static void launch(unsigned int *data, unsigned int first, unsigned int n, cudaStream_t s)
{
	add_index<<<(n + BLOCK - 1) / BLOCK, BLOCK, 0, s>>>(data, first, n);
	CUDA(cudaGetLastError());
}

static unsigned int n_wrong(const unsigned int *words, unsigned int times)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < N; i++)
		n += words[i] != 1 + times * i;
	return n;
}

static size_t n_calls, n_wrong_codes;

/* A call that fails, and what it returns. */
static void expect(cudaError_t code, cudaError_t expected)
{
	n_calls++;
	n_wrong_codes += code != expected;
	cudaGetLastError();
}

static cudaMemoryType type_of(const void *p)
{
	cudaPointerAttributes attributes;

	CUDA(cudaPointerGetAttributes(&attributes, p));
	return attributes.type;
}

static void copy_through_device(unsigned int *words)
{
	cudaStream_t streams[STREAMS];
	unsigned int *chunks;

	CUDA(cudaMalloc(&chunks, N * sizeof(*chunks)));
	for (int i = 0; i < STREAMS; i++)
		CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	for (int i = 0; i < CHUNKS; i++) {
		unsigned int first = i * PER_CHUNK;
		cudaStream_t s = streams[i % STREAMS];

		CUDA(cudaMemcpyAsync(chunks + first, words + first,
			PER_CHUNK * sizeof(*words), cudaMemcpyHostToDevice, s));
		launch(chunks + first, first, PER_CHUNK, s);
		CUDA(cudaMemcpyAsync(words + first, chunks + first,
			PER_CHUNK * sizeof(*words), cudaMemcpyDeviceToHost, s));
	}
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaFree(chunks));
}

int main(void)
{
	std::vector<unsigned int> memory(N, 1);
	unsigned int *words = memory.data(), *mapped;
	size_t bytes = N * sizeof(*words), n = 0;
	int has = 0;

	CUDA(cudaDeviceGetAttribute(&has, cudaDevAttrHostRegisterSupported, 0));
	if (!has) {
		fprintf(stderr, "this device registers no memory of this process\n");
		return EXIT_FAILURE;
	}
	CUDA(cudaHostRegister(words, bytes, cudaHostRegisterMapped));
	expect(cudaHostRegister(words, bytes, cudaHostRegisterMapped),
		cudaErrorHostMemoryAlreadyRegistered);
	copy_through_device(words);
	n += n_wrong(words, 1);

	CUDA(cudaHostGetDevicePointer(&mapped, words, 0));
	launch(mapped, 0, N, NULL);
	CUDA(cudaDeviceSynchronize());
	n += n_wrong(words, 2);
	n += type_of(words) != cudaMemoryTypeHost;

	launch(mapped, 0, N, NULL);
	CUDA(cudaHostUnregister(words));
	n += n_wrong(words, 3);
	n += type_of(words) != cudaMemoryTypeUnregistered;
	expect(cudaHostUnregister(words), cudaErrorHostMemoryNotRegistered);
	return result("register", 3 * N + n_calls, n + n_wrong_codes);
}
