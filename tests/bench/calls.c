/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single calls, all made by one thread
 */

#include <unistd.h>

#include "library.h"

#define POOL_BLOCK (64 * BENCH_KIB)

static void get_info(struct bench *bench)
{
	size_t free, total;

	must(cuMemGetInfo(&free, &total));
}

static void launch_one(struct bench *bench)
{
	launch(bench, 1);
}

static void record(struct bench *bench)
{
	must(cuEventRecord(bench->event, bench->stream));
}

static void query_event(struct bench *bench)
{
	must(cuEventQuery(bench->event));
}

static void query_stream(struct bench *bench)
{
	must(cuStreamQuery(bench->stream));
}

static void synchronize(struct bench *bench)
{
	must(cuStreamSynchronize(bench->stream));
}

static void launch_and_synchronize(struct bench *bench)
{
	launch(bench, 1);
	must(cuStreamSynchronize(bench->stream));
}

static void launch_and_record(struct bench *bench)
{
	launch(bench, 1);
	must(cuEventRecord(bench->event, bench->stream));
}

static void copy_small(struct bench *bench)
{
	must(cuMemcpyHtoDAsync(bench->small, bench->pageable, SMALL_COPY, bench->stream));
}

static unsigned int n_samples(const struct bench *bench)
{
	return bench_count(bench->sink, 101, 5);
}

static void measure_sync_null_call(struct bench *bench, const char *name)
{
	measure_each(bench, name, n_samples(bench), bench_count(bench->sink, 200, 50),
		get_info);
}

static void measure_call_asleep(struct bench *bench, const char *name)
{
	struct bench_samples samples = {};
	double start;

	while (bench_more(&samples, bench_count(bench->sink, 41, 3))) {
		usleep(BENCH_ASLEEP_US);
		start = bench_now();
		get_info(bench);
		bench_sample(&samples, bench_now() - start);
	}
	bench_report(bench->sink, name, "ns", &samples);
}

static void measure_async_launch(struct bench *bench, const char *name)
{
	measure_each(bench, name, n_samples(bench), BURST, launch_one);
}

static void measure_launch_rate(struct bench *bench, const char *name)
{
	unsigned int n = bench_count(bench->sink, 20000, 5000);
	struct bench_samples samples = {};
	double start;

	while (bench_more(&samples, bench_count(bench->sink, 41, 3))) {
		start = bench_now();
		launch(bench, n);
		must(cuStreamSynchronize(bench->stream));
		bench_sample(&samples, n / ((bench_now() - start) / 1e9));
	}
	bench_report(bench->sink, name, "1/s", &samples);
}

static void measure_event_record(struct bench *bench, const char *name)
{
	measure_each(bench, name, n_samples(bench), BURST, record);
}

static void measure_event_query_done(struct bench *bench, const char *name)
{
	must(cuEventRecord(bench->event, bench->stream));
	must(cuEventSynchronize(bench->event));
	measure_each(bench, name, n_samples(bench), bench_count(bench->sink, 1000, 200),
		query_event);
}

static void measure_stream_query_done(struct bench *bench, const char *name)
{
	launch_and_synchronize(bench);
	measure_each(bench, name, n_samples(bench), bench_count(bench->sink, 1000, 200),
		query_stream);
}

static void measure_stream_synchronize_done(struct bench *bench, const char *name)
{
	launch_and_synchronize(bench);
	measure_each(bench, name, n_samples(bench), bench_count(bench->sink, 1000, 200),
		synchronize);
}

static void measure_launch_synchronize(struct bench *bench, const char *name)
{
	measure_each(bench, name, n_samples(bench), bench_count(bench->sink, 50, 20),
		launch_and_synchronize);
}

/* Kernels one after another and their end, without and with a record of an event after
 * each: the difference is the cost of the word that a record writes. */
static void measure_back_to_back(
	struct bench *bench, const char *name, void (*call)(struct bench *bench))
{
	struct bench_samples samples = {};
	double start;

	while (bench_more(&samples, n_samples(bench))) {
		start = bench_now();
		for (unsigned int k = 0; k < BURST; k++)
			call(bench);
		must(cuStreamSynchronize(bench->stream));
		bench_sample(&samples, (bench_now() - start) / BURST);
	}
	bench_report(bench->sink, name, "ns", &samples);
}

static void measure_kernels(struct bench *bench, const char *name)
{
	measure_back_to_back(bench, name, launch_one);
}

static void measure_kernels_with_records(struct bench *bench, const char *name)
{
	measure_back_to_back(bench, name, launch_and_record);
}

static void measure_small_copy(struct bench *bench, const char *name)
{
	measure_each(bench, name, n_samples(bench), 64, copy_small);
}

static void measure_read_back(struct bench *bench, const char *name)
{
	unsigned int n = bench_count(bench->sink, 50, 20);
	struct bench_samples samples = {};
	double start;

	if (!cuda.has_copies)
		return;
	while (bench_more(&samples, n_samples(bench))) {
		start = bench_now();
		for (unsigned int k = 0; k < n; k++)
			must(cuMemcpyDtoH(bench->pageable, bench->small, SMALL_COPY));
		bench_sample(&samples, (bench_now() - start) / n);
	}
	bench_report(bench->sink, name, "ns", &samples);
}

static void alloc_and_free(struct bench *bench)
{
	CUdeviceptr memory;

	must(cuMemAllocAsync(&memory, POOL_BLOCK, bench->stream));
	must(cuMemFreeAsync(memory, bench->stream));
}

/* A block that was freed in the same stream before. */
static void measure_pool(struct bench *bench, const char *name)
{
	if (!cuda.has_pools)
		return;
	/* The pool gets its memory. */
	alloc_and_free(bench);
	measure_each(bench, name, n_samples(bench), bench_count(bench->sink, 1000, 200),
		alloc_and_free);
}

void measure_calls(struct bench *bench)
{
	static const struct measurement table[] = {
		{ "sync_null_call", measure_sync_null_call },
		{ "call_asleep", measure_call_asleep },
		{ "async_launch", measure_async_launch },
		{ "launch_rate", measure_launch_rate },
		{ "event_record", measure_event_record },
		{ "event_query_done", measure_event_query_done },
		{ "stream_query_done", measure_stream_query_done },
		{ "stream_synchronize_done", measure_stream_synchronize_done },
		{ "launch_synchronize", measure_launch_synchronize },
		{ "pool_alloc_free", measure_pool },
		{ "kernels_back_to_back", measure_kernels },
		{ "kernels_with_records", measure_kernels_with_records },
		{ "small_h2d_async_4kib", measure_small_copy },
		{ "latency_d2h_4kib", measure_read_back },
	};

	measure_table(bench, table, BENCH_N(table));
}

/* The rows that a machine with one processor for both sides would have. */
void measure_same_core(struct bench *bench)
{
	static const struct measurement table[] = {
		{ "sync_null_call_same_core", measure_sync_null_call },
		{ "async_launch_same_core", measure_async_launch },
		{ "launch_rate_same_core", measure_launch_rate },
		{ "launch_synchronize_same_core", measure_launch_synchronize },
	};

	measure_table(bench, table, BENCH_N(table));
}
