/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's own limits: copies from a program's memory into memory that is shared
 */

#include <emmintrin.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

/* Bytes moved in one sample, at least. */
#define COPY_BATCH (16 * BENCH_MIB)

struct area {
	uint8_t *from, *to;
	size_t size;
	unsigned int n;
};

static void copy(const struct area *area)
{
	for (size_t k = 0; k < area->n; k++) {
		memcpy(area->to, area->from, area->size);
		__asm__ volatile("" : : : "memory");
	}
}

/* Stores that go around the caches. */
static void copy_around(const struct area *area)
{
	for (size_t k = 0; k < area->n; k++) {
		const __m128i *from = (const __m128i *)area->from;
		__m128i *to = (__m128i *)area->to;

		for (size_t i = 0; i < area->size / sizeof(*to); i++)
			_mm_stream_si128(to + i, _mm_load_si128(from + i));
		_mm_sfence();
	}
}

struct half {
	struct area area;
	pthread_barrier_t *barrier;
	unsigned int n_samples;
};

static void *copy_half(void *userdata)
{
	struct half *half = userdata;

	for (unsigned int i = 0; i < half->n_samples; i++) {
		pthread_barrier_wait(half->barrier);
		copy(&half->area);
		pthread_barrier_wait(half->barrier);
	}
	return NULL;
}

static double rate(const struct area *area, double start)
{
	return area->size * area->n / ((bench_now() - start) / 1e9);
}

/* Half of it by another thread on the other processor. */
static void measure_pair(const struct bench_sink *sink, const char *name,
	const struct area *area, unsigned int n_samples)
{
	struct half other = { .area = *area, .n_samples = n_samples };
	struct area mine = *area;
	struct bench_samples samples = {};
	pthread_barrier_t barrier;
	pthread_t thread;
	double start;

	if (!bench_wanted(sink->options, name))
		return;
	mine.size /= 2;
	other.area.size -= mine.size;
	other.area.from += mine.size;
	other.area.to += mine.size;
	other.barrier = &barrier;
	pthread_barrier_init(&barrier, NULL, 2);
	if (bench_thread(&thread, sink->options->host_cpu, copy_half, &other)) {
		for (unsigned int i = 0; i < n_samples; i++) {
			pthread_barrier_wait(&barrier);
			start = bench_now();
			copy(&mine);
			pthread_barrier_wait(&barrier);
			bench_sample(&samples, rate(area, start));
		}
		pthread_join(thread, NULL);
	}
	pthread_barrier_destroy(&barrier);
	bench_report(sink, name, "B/s", &samples);
}

static void measure_one(const struct bench_sink *sink, const char *name,
	const struct area *area, unsigned int n_samples,
	void (*copy)(const struct area *area))
{
	struct bench_samples samples = {};
	double start;

	if (!bench_wanted(sink->options, name))
		return;
	while (bench_more(&samples, n_samples)) {
		start = bench_now();
		copy(area);
		bench_sample(&samples, rate(area, start));
	}
	bench_report(sink, name, "B/s", &samples);
}

static void measure_size(const struct bench_sink *sink, const struct bench_size *size)
{
	unsigned int n = bench_is_large(size) ? 7 : 21;
	struct area area = { .size = size->bytes,
		.n = size->bytes < COPY_BATCH ? COPY_BATCH / size->bytes : 1 };
	char one[BENCH_NAME_MAX], two[BENCH_NAME_MAX], around[BENCH_NAME_MAX];

	snprintf(one, sizeof(one), "memcpy_%s", size->name);
	snprintf(two, sizeof(two), "memcpy_2threads_%s", size->name);
	snprintf(around, sizeof(around), "nt_copy_%s", size->name);
	if (!bench_wanted(sink->options, one) && !bench_wanted(sink->options, two) &&
		!bench_wanted(sink->options, around))
		return;
	area.from = aligned_alloc(4096, (size->bytes + 4095) & ~4095ull);
	area.to = mmap(NULL, size->bytes, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (area.from && area.to != MAP_FAILED) {
		/* Pages are made before the first sample, not in it. */
		memset(area.from, 1, size->bytes);
		memcpy(area.to, area.from, size->bytes);
		n = bench_count(sink, n, 3);
		measure_one(sink, one, &area, n, copy);
		/* Smaller ones measure the barrier, or the caches twice. */
		if (size->bytes >= BENCH_MIB &&
			sink->options->guest_cpu != sink->options->host_cpu)
			measure_pair(sink, two, &area, n);
		if (size->bytes >= 64 * BENCH_KIB)
			measure_one(sink, around, &area, n, copy_around);
	}
	free(area.from);
	if (area.to != MAP_FAILED)
		munmap(area.to, size->bytes);
}

void bench_memory(const struct bench_sink *sink)
{
	for (const struct bench_size *size = bench_sizes; size->name; size++)
		if (!bench_too_large(sink, size))
			measure_size(sink, size);
}
