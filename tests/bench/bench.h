/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * vgpu-bench: what the stack adds to a call, beside what the machine can do at best
 *
 * A measurement is a set of samples; a sample is one batch of calls, divided by their
 * number. Times are nanoseconds, rates are per second, bandwidths are bytes per second.
 * Every figure belongs to a driver: "machine" for the machine's own limits,
 * "null", "soft" and "nvidia" for calls that went through the guest library, vgpud and a
 * worker to that driver, "null-direct" and "nvidia-direct" for the same calls made to the
 * driver in the program's own process.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define BENCH_NAME_MAX 48
#define BENCH_SAMPLES_MAX 128
#define BENCH_RESULTS_MAX 512

#define BENCH_KIB (1ull << 10)
#define BENCH_MIB (1ull << 20)
#define BENCH_GIB (1ull << 30)

struct bench_result {
	char name[BENCH_NAME_MAX];
	char unit[8]; /* "ns", "1/s" or "B/s" */
	char driver[24];
	double median;
	double p10;
	double p90;
	unsigned int n; /* samples */
};

struct bench_samples {
	double value[BENCH_SAMPLES_MAX];
	unsigned int n;
};

struct bench_options {
	bool quick;	  /* few and short samples: for a look, not for a figure */
	const char *only; /* beginning of the names to be measured; NULL: all */
	int guest_cpu;	  /* where the calls are made */
	int host_cpu;	  /* where vgpud and its workers run; may be the same */
};

struct bench_size {
	const char *name;
	size_t bytes;
};

/* The sizes of all copies, smallest first; ends with a NULL name. */
extern const struct bench_size bench_sizes[];

/* Where results go: a pipe to the program that prints them, one struct a result. */
struct bench_sink {
	int fd;
	const char *driver;
	const struct bench_options *options;
};

static inline double bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

/* Adds a sample; those beyond BENCH_SAMPLES_MAX are dropped. */
void bench_sample(struct bench_samples *samples, double value);

/* Whether the options ask for that name. */
bool bench_wanted(const struct bench_options *options, const char *name);

/* Condenses the samples and writes the result. Nothing is written without a sample. */
void bench_report(const struct bench_sink *sink, const char *name, const char *unit,
	struct bench_samples *samples);

/* Writes the table for people, sorted by name as it was measured. */
void bench_print_table(FILE *file, const struct bench_result *results, size_t n);

/* Writes {"machine": {...}, "results": [...]}. */
void bench_print_json(FILE *file, const struct bench_options *options,
	const struct bench_result *results, size_t n);

/* Runs the calling thread on one processor only. Returns: 0 or -errno. */
int bench_pin(int cpu);

/* The machine's own limits: round trip of a cache line, memcpy by size. */
void bench_limits(const struct bench_sink *sink);

enum bench_part {
	BENCH_LIMITS,
	BENCH_CALLS,	  /* calls alone */
	BENCH_EVERYTHING, /* calls, copies, allocations */
	BENCH_FIRST_USE,  /* what only the first use in a process shows */
};

/*
 * Measures that part through the CUDA library at @path, which this process then keeps.
 * The process ends with a line on stderr if a call fails.
 *
 * Return: 0, or -1 after a line on stderr: the library is none.
 */
int bench_calls(const struct bench_sink *sink, const char *path, enum bench_part part);

/*
 * A private vgpud
 */

struct bench_host {
	int pid;
	char dir[64];
	char socket[96];
};

/*
 * Starts vgpud with that driver on a processor and waits until it is ready.
 *
 * @driver:	as the configuration names it: null, soft, nvidia or a path
 *
 * Return: 0, or -1 after a line on stderr.
 */
int bench_host_start(struct bench_host *host, const char *driver, int cpu);
void bench_host_stop(struct bench_host *host);
