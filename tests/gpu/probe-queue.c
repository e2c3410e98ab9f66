/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe: how many launches a stream accepts before cuLaunchKernel blocks
 *
 * A kernel that waits for a flag holds each stream; empty kernels are queued after it. A
 * second thread detects that the count no longer changes and sets the flag.
 */

#include <pthread.h>
#include <unistd.h>

#include "probe.h"

#define LAUNCHES_MAX 200000 /* a queue longer than this is as good as endless */

struct watch {
	struct probe *probe;
	uint64_t n_launches; /* grows with each launch that returned */
	uint64_t n_at_stop;  /* its value when unchanged for 300 ms */
	bool done;
};

static void *watch(void *argument)
{
	struct watch *watch = argument;
	uint64_t last = 0, now;
	int n_still = 0;

	while (!__atomic_load_n(&watch->done, __ATOMIC_RELAXED) && n_still < 3) {
		usleep(100000);
		now = __atomic_load_n(&watch->n_launches, __ATOMIC_RELAXED);
		n_still = now == last && now ? n_still + 1 : 0;
		last = now;
	}
	watch->n_at_stop = last;
	*watch->probe->flag = 1;
	return NULL;
}

static void measure(struct probe *probe, int n_streams)
{
	struct watch state = { .probe = probe };
	void *parameters[] = { &probe->device_flag };
	CUstream streams[32];
	CUresult r = CUDA_SUCCESS;
	pthread_t thread;
	char name[64];

	snprintf(name, sizeof(name), "launches_before_block_%d_streams", n_streams);
	*probe->flag = 0;
	for (int i = 0; i < n_streams; i++) {
		r = cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING);
		if (!probe_ok(probe, name, r))
			return;
		r = cuLaunchKernel(probe->wait_for, 1, 1, 1, 1, 1, 1, 0, streams[i],
			parameters, NULL);
		if (!probe_ok(probe, name, r))
			return;
	}
	pthread_create(&thread, NULL, watch, &state);
	for (int i = 0; i < LAUNCHES_MAX && !*probe->flag && !r; i++) {
		r = cuLaunchKernel(probe->empty, 1, 1, 1, 1, 1, 1, 0,
			streams[i % n_streams], NULL, NULL);
		__atomic_fetch_add(&state.n_launches, 1, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&state.done, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	cuCtxSynchronize();
	for (int i = 0; i < n_streams; i++)
		cuStreamDestroy(streams[i]);
	if (probe_ok(probe, name, r))
		probe_number(probe, name, state.n_at_stop, "launches");
}

static void launch_cost(struct probe *probe)
{
	const int n = 20000;
	CUstream stream;
	double start;

	cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	start = probe_now();
	for (int i = 0; i < n; i++) {
		cuLaunchKernel(probe->empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
		if (i % 512 == 511)
			cuStreamSynchronize(stream);
	}
	cuStreamSynchronize(stream);
	probe_number(probe, "empty_launch", (probe_now() - start) / n * 1e9, "ns");
	cuStreamDestroy(stream);
}

void probe_queue(struct probe *probe)
{
	measure(probe, 1);
	measure(probe, 32);
	launch_cost(probe);
}
