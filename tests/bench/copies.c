/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies by size, and memory for them
 *
 * One sample moves the same bytes over and over, at least COPY_BATCH of them or COPIES
 * copies. The memory of the host is used before the first sample.
 */

#include <string.h>

#include "library.h"

#define COPY_BATCH (16 * BENCH_MIB)
#define COPIES_MAX 1000

struct way {
	CUdeviceptr device;
	void *host;
	size_t size;
	size_t n; /* copies in a sample */
	bool large;
};

static void copy_up(const struct way *way)
{
	for (size_t i = 0; i < way->n; i++)
		must(cuMemcpyHtoD(way->device, way->host, way->size));
	must(cuCtxSynchronize());
}

static void copy_down(const struct way *way)
{
	for (size_t i = 0; i < way->n; i++)
		must(cuMemcpyDtoH(way->host, way->device, way->size));
}

static void measure_way(struct bench *bench, const struct way *way, const char *name,
	void (*copy)(const struct way *way))
{
	unsigned int n = bench_count(bench->sink, way->large ? 7 : 21, 3);
	struct bench_samples samples = {};
	double start;

	if (!bench_wanted(bench->sink->options, name))
		return;
	copy(way); /* makes whatever is made once */
	while (bench_more(&samples, n)) {
		start = bench_now();
		copy(way);
		bench_sample(
			&samples, way->size * way->n / ((bench_now() - start) / 1e9));
	}
	bench_report(bench->sink, name, "B/s", &samples);
}

static void measure_kind(
	struct bench *bench, void *host, const char *kind, const struct bench_size *size)
{
	struct way way = {
		.host = host, .size = size->bytes, .large = bench_is_large(size)
	};
	char name[BENCH_NAME_MAX];

	way.n = COPY_BATCH / size->bytes;
	way.n = way.n > COPIES_MAX ? COPIES_MAX : way.n < 1 ? 1 : way.n;
	if (bench->sink->options->quick && way.n > 16)
		way.n = 16;
	must(cuMemAlloc(&way.device, size->bytes));
	snprintf(name, sizeof(name), "copy_h2d_%s_%s", kind, size->name);
	measure_way(bench, &way, name, copy_up);
	snprintf(name, sizeof(name), "copy_d2h_%s_%s", kind, size->name);
	measure_way(bench, &way, name, copy_down);
	must(cuMemFree(way.device));
}

static bool is_wanted(
	const struct bench *bench, const char *kind, const struct bench_size *size)
{
	char up[BENCH_NAME_MAX], down[BENCH_NAME_MAX];

	snprintf(up, sizeof(up), "copy_h2d_%s_%s", kind, size->name);
	snprintf(down, sizeof(down), "copy_d2h_%s_%s", kind, size->name);
	return bench_wanted(bench->sink->options, up) ||
	       bench_wanted(bench->sink->options, down);
}

static void measure_pageable(struct bench *bench, const struct bench_size *size)
{
	void *host;

	if (!is_wanted(bench, "pageable", size))
		return;
	host = malloc(size->bytes);
	if (!host) {
		fprintf(stderr, "vgpu-bench: no memory for copies of %s\n", size->name);
		exit(1);
	}
	memset(host, 1, size->bytes);
	measure_kind(bench, host, "pageable", size);
	free(host);
}

static void measure_pinned(struct bench *bench, const struct bench_size *size)
{
	void *host;

	if (!is_wanted(bench, "pinned", size))
		return;
	must(cuMemHostAlloc(&host, size->bytes, 0));
	memset(host, 1, size->bytes);
	measure_kind(bench, host, "pinned", size);
	must(cuMemFreeHost(host));
}

void measure_copies(struct bench *bench)
{
	for (const struct bench_size *size = bench_sizes; size->name; size++) {
		if (bench_too_large(bench->sink, size))
			continue;
		measure_pageable(bench, size);
		measure_pinned(bench, size);
	}
}

/*
 * Allocations of pinned memory, whose pages the host has had before or has not
 */

static void pin(struct bench *bench, const char *name, unsigned int n_samples)
{
	struct bench_samples samples = {};
	double start;
	void *host;

	while (bench_more(&samples, n_samples)) {
		start = bench_now();
		must(cuMemHostAlloc(&host, BENCH_GIB, 0));
		bench_sample(&samples, bench_now() - start);
		must(cuMemFreeHost(host));
	}
	bench_report(bench->sink, name, "ns", &samples);
}

void measure_pin(struct bench *bench)
{
	void *host;

	if (!bench_wanted(bench->sink->options, "pin_1gib"))
		return;
	must(cuMemHostAlloc(&host, BENCH_GIB, 0));
	must(cuMemFreeHost(host));
	pin(bench, "pin_1gib", bench_count(bench->sink, 21, 3));
}

void measure_pin_cold(struct bench *bench)
{
	pin(bench, "pin_1gib_cold", 1);
}
