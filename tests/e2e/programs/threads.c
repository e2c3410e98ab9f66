/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads of one context that take turns: in each round each of them copies to the
 * device, launches and copies back on a stream of its own, and checks the result
 */

#include <pthread.h>

#include "program.h"

#define N_THREADS 2
#define N_ROUNDS 32
#define N_VALUES 1024

struct worker {
	const struct program *program;
	CUfunction function;
	unsigned int number;
	size_t n_wrong;
};

static pthread_barrier_t barrier;

static void run_round(struct worker *worker, CUdeviceptr values, unsigned int *host,
	CUstream stream, unsigned int round)
{
	unsigned int value = worker->number * 1000 + round;
	/* The other half stays as it was copied. */
	int n = N_VALUES / 2;
	void *parameters[] = { &values, &value, &n };

	for (unsigned int i = 0; i < N_VALUES; i++)
		host[i] = i + round;
	CU(cuMemcpyHtoDAsync(values, host, N_VALUES * sizeof(*host), stream));
	CU(cuLaunchKernel(worker->function, (n + 255) / 256, 1, 1, 256, 1, 1, 0, stream,
		parameters, NULL));
	CU(cuMemcpyDtoHAsync(host, values, N_VALUES * sizeof(*host), stream));
	CU(cuStreamSynchronize(stream));
	for (unsigned int i = 0; i < N_VALUES; i++)
		worker->n_wrong += host[i] != (i < (unsigned int)n ? value : i + round);
}

static void *work(void *data)
{
	struct worker *worker = data;
	CUdeviceptr values;
	unsigned int *host;
	CUstream stream;

	CU(cuCtxSetCurrent(worker->program->context));
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuMemAlloc(&values, N_VALUES * sizeof(*host)));
	CU(cuMemHostAlloc((void **)&host, N_VALUES * sizeof(*host), 0));
	for (unsigned int round = 0; round < N_ROUNDS; round++) {
		pthread_barrier_wait(&barrier);
		run_round(worker, values, host, stream, round);
	}
	CU(cuMemFreeHost(host));
	CU(cuMemFree(values));
	CU(cuStreamDestroy(stream));
	return NULL;
}

int main(void)
{
	struct program program = program_start();
	struct worker workers[N_THREADS] = {};
	pthread_t threads[N_THREADS];
	size_t n_wrong = 0;

	pthread_barrier_init(&barrier, NULL, N_THREADS);
	for (unsigned int i = 0; i < N_THREADS; i++) {
		workers[i] = (struct worker){
			.program = &program,
			.function = program_function(&program, "fill"),
			.number = i + 1,
		};
		if (pthread_create(&threads[i], NULL, work, &workers[i]))
			abort();
	}
	for (unsigned int i = 0; i < N_THREADS; i++) {
		pthread_join(threads[i], NULL);
		n_wrong += workers[i].n_wrong;
	}
	pthread_barrier_destroy(&barrier);
	program_end(&program);
	return program_result("threads", N_THREADS * N_ROUNDS * N_VALUES, n_wrong);
}
