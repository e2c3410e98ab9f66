/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Concurrent copies of several threads do not interfere
 *
 * Each thread has its own memory with its own pattern, and copies it back and forth;
 * together they want more staging blocks than there are.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"
#include "test.h"

#include <cuda.h>

#define CHECK(_call) check_eq((_call), CUDA_SUCCESS)

#define THREADS 12
#define ROUNDS 12
/* Several large blocks and one that is not full. */
#define WORDS ((5 << 17) + 333)

static struct pair pair;
static CUcontext context;

static void fill(unsigned int *words, size_t n, unsigned int seed)
{
	for (size_t i = 0; i < n; i++)
		words[i] = seed + (unsigned int)i * 2654435761u;
}

static void check_round(CUdeviceptr memory, unsigned int *there, unsigned int *back,
	size_t n, unsigned int seed, CUstream stream)
{
	fill(there, n, seed);
	memset(back, 0, n * 4);
	CHECK(cuMemcpyHtoDAsync(memory, there, n * 4, stream));
	/* Staged data must not change any more. */
	memset(there, 0xff, n * 4);
	CHECK(cuMemcpyDtoHAsync(back, memory, n * 4, stream));
	fill(there, n, seed);
	CHECK(cuStreamSynchronize(stream));
	check(!memcmp(there, back, n * 4));
}

static void *copy(void *argument)
{
	unsigned int number = (unsigned int)(uintptr_t)argument;
	unsigned int *there = malloc(WORDS * 4), *back = malloc(WORDS * 4);
	CUdeviceptr memory;
	CUstream stream;

	CHECK(cuCtxSetCurrent(context));
	CHECK(cuMemAlloc(&memory, WORDS * 4));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned int i = 0; i < ROUNDS; i++) {
		size_t n = i % 3 ? WORDS : 1000;

		check_round(memory, there, back, n, number << 24 | i, stream);
	}
	CHECK(cuStreamDestroy(stream));
	CHECK(cuMemFree(memory));
	free(there);
	free(back);
	return NULL;
}

static void guest(void)
{
	pthread_t threads[THREADS];

	CHECK(cuInit(0));
	CHECK(cuCtxCreate_v2(&context, 0, 0));
	for (int i = 0; i < THREADS; i++)
		check_eq(
			pthread_create(&threads[i], NULL, copy, (void *)(uintptr_t)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

TEST_SECONDS(threads_copy_at_once_and_each_gets_its_own_bytes, 100)
{
	int status;
	pid_t pid;

	pair_start(&pair, NULL);
	pid = fork();
	check(pid >= 0);
	if (!pid) {
		guest();
		exit(0);
	}
	check_eq(waitpid(pid, &status, 0), pid);
	check_eq(status, 0);
	pair_stop(&pair);
}
