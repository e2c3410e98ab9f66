/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight threads, a stream each and the per-thread default stream
 */

#include <thread>

#include "runtime.h"

__global__ void step(unsigned int *x, int rounds)
{
	for (int i = 0; i < rounds; i++)
		x[threadIdx.x] = 3 * x[threadIdx.x] + 1;
}

static unsigned int stepped(unsigned int x, int rounds)
{
	while (rounds--)
		x = 3 * x + 1;
	return x;
}

static void work(int number, size_t *n_wrongp)
{
	std::vector<unsigned int> host(64);
	cudaStream_t streams[2] = { cudaStreamPerThread, NULL };
	int rounds = 0;
	unsigned int *p;

	CUDA(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking));
	CUDA(cudaMalloc(&p, 256));
	for (int i = 0; i < 2; i++) {
		for (int j = 0; j < 64; j++)
			host[j] = number + j;
		rounds = 0;
		CUDA(cudaMemcpyAsync(
			p, host.data(), 256, cudaMemcpyHostToDevice, streams[i]));
		for (int j = 0; j < 100; j++) {
			step<<<1, 64, 0, streams[i]>>>(p, number + j);
			rounds += number + j;
		}
		CUDA(cudaMemcpyAsync(
			host.data(), p, 256, cudaMemcpyDeviceToHost, streams[i]));
		CUDA(cudaStreamSynchronize(streams[i]));
		for (int j = 0; j < 64; j++)
			*n_wrongp += host[j] != stepped(number + j, rounds);
	}
	CUDA(cudaStreamDestroy(streams[1]));
	CUDA(cudaFree(p));
}

int main()
{
	std::vector<std::thread> threads;
	size_t n_wrong[8] = {}, sum = 0;

	for (int i = 0; i < 8; i++)
		threads.emplace_back(work, i, &n_wrong[i]);
	for (auto &thread : threads)
		thread.join();
	for (size_t n : n_wrong)
		sum += n;
	return result("threads", 8 * 128, sum);
}
