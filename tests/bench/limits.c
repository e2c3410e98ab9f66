/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's own limits
 *
 * What no remoting can beat: a cache line that goes to another processor and back, and
 * one thread that copies from its own memory into memory that is shared.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

#define ROUND_TRIPS 20000u
/* Bytes moved in one sample of memcpy, at least. */
#define COPY_BATCH (64 * BENCH_MIB)

struct ball {
	uint64_t value __attribute__((aligned(64)));
	uint64_t spare[7];
	int cpu;
};

#define BALL_END UINT64_MAX

static inline void relax(void)
{
	__builtin_ia32_pause();
}

/* Answers each odd number with the next even one. */
static void *return_ball(void *userdata)
{
	struct ball *ball = userdata;
	uint64_t value;

	bench_pin(ball->cpu);
	for (;;) {
		value = __atomic_load_n(&ball->value, __ATOMIC_ACQUIRE);
		if (value == BALL_END)
			return NULL;
		if (value & 1)
			__atomic_store_n(&ball->value, value + 1, __ATOMIC_RELEASE);
		else
			relax();
	}
}

static void measure_round_trip(const struct bench_sink *sink)
{
	unsigned int n_samples = sink->options->quick ? 5 : 41;
	static struct ball ball;
	struct bench_samples samples = {};
	pthread_t thread;
	double start;

	/* Two spinning threads on one processor measure the scheduler. */
	if (sink->options->guest_cpu == sink->options->host_cpu) {
		fprintf(stderr, "vgpu-bench: one processor: no spin_round_trip\n");
		return;
	}
	ball.value = 0;
	ball.cpu = sink->options->host_cpu;
	if (pthread_create(&thread, NULL, return_ball, &ball))
		return;
	for (unsigned int i = 0; i < n_samples; i++) {
		start = bench_now();
		for (unsigned int k = 0; k < ROUND_TRIPS; k++) {
			uint64_t value = ball.value + 1;

			__atomic_store_n(&ball.value, value, __ATOMIC_RELEASE);
			while (__atomic_load_n(&ball.value, __ATOMIC_ACQUIRE) == value)
				relax();
		}
		bench_sample(&samples, (bench_now() - start) / ROUND_TRIPS);
	}
	__atomic_store_n(&ball.value, BALL_END, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	bench_report(sink, "spin_round_trip", "ns", &samples);
}

static void measure_memcpy(const struct bench_sink *sink, const struct bench_size *size)
{
	unsigned int n_samples = size->bytes > 64 * BENCH_MIB ? 5 : 15;
	size_t n = size->bytes < COPY_BATCH ? COPY_BATCH / size->bytes : 1;
	struct bench_samples samples = {};
	char name[BENCH_NAME_MAX];
	uint8_t *from, *to;
	double start;

	snprintf(name, sizeof(name), "memcpy_%s", size->name);
	if (!bench_wanted(sink->options, name))
		return;
	from = malloc(size->bytes);
	to = mmap(NULL, size->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		-1, 0);
	if (from && to != MAP_FAILED) {
		/* Pages are made before the first sample, not in it. */
		memset(from, 1, size->bytes);
		memcpy(to, from, size->bytes);
		for (unsigned int i = 0; i < (sink->options->quick ? 3 : n_samples);
			i++) {
			start = bench_now();
			for (size_t k = 0; k < n; k++) {
				memcpy(to, from, size->bytes);
				__asm__ volatile("" : : : "memory");
			}
			bench_sample(&samples,
				size->bytes * n / ((bench_now() - start) / 1e9));
		}
	}
	bench_report(sink, name, "B/s", &samples);
	free(from);
	if (to != MAP_FAILED)
		munmap(to, size->bytes);
}

void bench_limits(const struct bench_sink *sink)
{
	if (bench_wanted(sink->options, "spin_round_trip"))
		measure_round_trip(sink);
	for (const struct bench_size *size = bench_sizes; size->name; size++)
		measure_memcpy(sink, size);
}
