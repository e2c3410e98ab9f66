/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several threads that launch at once
 *
 * They share the guest's processor, each has its own stream, and none has priority: one
 * of them is preempted while it holds the lock, which is the effect to be measured. They
 * may not have more processor time than the threads of a driver in this process, for
 * which they spin.
 */

#include <pthread.h>

#include "library.h"

#define THREADS_MAX 8u

struct submitter {
	struct bench *bench;
	CUstream stream;
	pthread_barrier_t *barrier;
	pthread_t thread;
	unsigned int n;
	double start, end;
};

static void *submit(void *userdata)
{
	struct submitter *submitter = userdata;

	must(cuCtxSetCurrent(submitter->bench->context));
	launch_on(submitter->bench, submitter->stream, 1);
	must(cuStreamSynchronize(submitter->stream));
	pthread_barrier_wait(submitter->barrier);
	submitter->start = bench_now();
	launch_on(submitter->bench, submitter->stream, submitter->n);
	must(cuStreamSynchronize(submitter->stream));
	submitter->end = bench_now();
	return NULL;
}

/* Returns: launches per second of all threads together. */
static double submit_all(struct bench *bench, const CUstream *streams, unsigned int n)
{
	unsigned int n_launches = bench_count(bench->sink, 100000, 8000) / n;
	struct submitter submitters[THREADS_MAX];
	pthread_barrier_t barrier;
	double start, end;

	pthread_barrier_init(&barrier, NULL, n);
	for (unsigned int i = 0; i < n; i++) {
		submitters[i] = (struct submitter){ .bench = bench,
			.stream = streams[i],
			.barrier = &barrier,
			.n = n_launches };
		if (pthread_create(&submitters[i].thread, NULL, submit, &submitters[i])) {
			fprintf(stderr, "vgpu-bench: no thread\n");
			exit(1);
		}
	}
	for (unsigned int i = 0; i < n; i++)
		pthread_join(submitters[i].thread, NULL);
	pthread_barrier_destroy(&barrier);
	start = submitters[0].start;
	end = submitters[0].end;
	for (unsigned int i = 1; i < n; i++) {
		start = submitters[i].start < start ? submitters[i].start : start;
		end = submitters[i].end > end ? submitters[i].end : end;
	}
	return n * n_launches / ((end - start) / 1e9);
}

void measure_threads(struct bench *bench)
{
	static const unsigned int counts[] = { 1, 2, 4, THREADS_MAX };
	static CUstream streams[THREADS_MAX];

	for (size_t i = 0; i < BENCH_N(counts); i++) {
		struct bench_samples samples = {};
		char name[BENCH_NAME_MAX];

		snprintf(name, sizeof(name), "launch_rate_threads_%u", counts[i]);
		if (!bench_wanted(bench->sink->options, name))
			continue;
		for (unsigned int k = 0; k < counts[i]; k++)
			if (!streams[k])
				must(cuStreamCreate(&streams[k], CU_STREAM_NON_BLOCKING));
		while (bench_more(&samples, bench_count(bench->sink, 7, 3)))
			bench_sample(&samples, submit_all(bench, streams, counts[i]));
		bench_report(bench->sink, name, "1/s", &samples);
	}
}
