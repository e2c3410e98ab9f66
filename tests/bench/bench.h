/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * vgpu-bench: the cost of a call through the stack, and the limits of the machine
 *
 * A measurement is a set of samples; a sample is one batch of calls, divided by their
 * number: short compared with a time slice of the scheduler, so that other work spoils
 * some samples but not the median. Times are nanoseconds, rates are per second,
 * bandwidths are bytes per second, processor time is processors: seconds of it per
 * second. Every figure belongs to a driver: "machine" for the machine's own limits,
 * "null", "soft" and "nvidia" for calls that went through the guest library, vgpud and a
 * worker to that driver, "null-direct" and so on for the same calls made to the driver in
 * the program's own process.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#define BENCH_NAME_MAX 48
#define BENCH_DRIVER_MAX 24
#define BENCH_NOTE_MAX 96
#define BENCH_SAMPLES_MAX 128
#define BENCH_RESULTS_MAX 1024
#define BENCH_ONLY_MAX 16

#define BENCH_KIB (1ull << 10)
#define BENCH_MIB (1ull << 20)
#define BENCH_GIB (1ull << 30)

/* How long a host or a thread is left alone that is to be found asleep: longer than any
 * spin, and not when a host looks in its sleep (vgpu/wake.h), after 20, 60 or 140 ms. */
#define BENCH_ASLEEP_US 35000

#define BENCH_N(_array) (sizeof(_array) / sizeof((_array)[0]))

struct bench_result {
	char name[BENCH_NAME_MAX];
	char unit[8]; /* "ns", "1/s", "B/s" or "cpu" */
	char driver[BENCH_DRIVER_MAX];
	char note[BENCH_NOTE_MAX]; /* why there is no figure; then n is 0 */
	double median;
	double p10;
	double p90;
	unsigned int n; /* samples */
};

struct bench_results {
	struct bench_result result[BENCH_RESULTS_MAX];
	size_t n;
};

struct bench_samples {
	double value[BENCH_SAMPLES_MAX];
	unsigned int n;
	double begun; /* when the first one was asked for */
};

struct bench_options {
	bool quick;			  /* few and short samples: not for a figure */
	bool verbose;			  /* names on stderr as they are measured */
	const char *only[BENCH_ONLY_MAX]; /* beginnings of names; none: all */
	unsigned int n_only;
	int guest_cpu; /* where the calls are made */
	int host_cpu;  /* where vgpud and its workers run; may be the same */
};

struct bench_size {
	const char *name;
	size_t bytes;
};

/* The sizes of all copies, smallest first; ends with a NULL name. */
extern const struct bench_size bench_sizes[];

/* Few samples are enough, and are all there is time for. */
static inline bool bench_is_large(const struct bench_size *size)
{
	return size->bytes > 64 * BENCH_MIB;
}

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

/* How many samples, or calls in one: the first for a figure, the other for a look. */
static inline unsigned int bench_count(
	const struct bench_sink *sink, unsigned int full, unsigned int quick)
{
	return sink->options->quick ? quick : full;
}

/* Whether a look leaves that size out. */
static inline bool bench_too_large(
	const struct bench_sink *sink, const struct bench_size *size)
{
	return sink->options->quick && bench_is_large(size);
}

/* Adds a sample; those beyond BENCH_SAMPLES_MAX are dropped. */
void bench_sample(struct bench_samples *samples, double value);

/*
 * Whether another sample is to be taken before each of @wanted. On a machine with other
 * work a row could take minutes: it ends after a while with the samples it has.
 */
bool bench_more(struct bench_samples *samples, unsigned int wanted);

/* Whether the options ask for that name. */
bool bench_wanted(const struct bench_options *options, const char *name);

/* Condenses the samples and writes the result. Nothing is written without a sample. */
void bench_report(const struct bench_sink *sink, const char *name, const char *unit,
	struct bench_samples *samples);

/* Writes a result without a figure, and why there is none. */
void bench_report_none(const struct bench_sink *sink, const char *name, const char *unit,
	const char *why);

/* Takes all results from a pipe until its other end is closed; closes it. */
void bench_take(struct bench_results *results, int fd);

/*
 * The row that @result is judged by, as names[0] = driver, names[1] = name.
 *
 * Return: whether there is one.
 */
bool bench_limit_of(const struct bench_result *result, char names[2][BENCH_NAME_MAX]);

/* How many times the limit a result is, in the same unit; 0 where one is missing. */
double bench_ratio(
	const struct bench_results *results, const struct bench_result *result);

/* The machine's own description; load is read at the beginning and at the end. */
struct bench_machine {
	double load_before;
	double load_after;
};

/* Writes the table for people, in the order of measuring. */
void bench_print_table(FILE *file, const struct bench_results *results);

/* Writes {"version": 1, "machine": {...}, "results": [...]}. */
void bench_print_json(FILE *file, const struct bench_options *options,
	const struct bench_machine *machine, const struct bench_results *results);

/* Writes the members of "machine" that describe it, each followed by a comma. */
void bench_print_machine(FILE *file, const struct bench_machine *machine);

/*
 * Starts a process that is killed when this one ends in whatever way: what is measured,
 * or measured with, must not outlive a program that was killed.
 *
 * Return: as fork().
 */
pid_t bench_fork(void);

/* Runs the calling thread on one processor only. Returns: 0 or -errno. */
int bench_pin(int cpu);

/*
 * Starts a thread on a processor. It is there from its first instruction on: one that had
 * to leave the caller's first would wait for ever for a real-time thread that spins.
 *
 * Return: whether it was started.
 */
bool bench_thread(pthread_t *threadp, int cpu, void *(*run)(void *), void *userdata);

/*
 * The machine's own limits
 */

void bench_round_trips(const struct bench_sink *sink); /* limits.c */
void bench_ring(const struct bench_sink *sink);	       /* ring.c */
void bench_memory(const struct bench_sink *sink);      /* memory.c */
void bench_pages(const struct bench_sink *sink);       /* pages.c */
void bench_native(const struct bench_sink *sink);      /* kernels.c */

/*
 * A private vgpud
 */

struct bench_host {
	int pid;
	char dir[64];
	char socket[96];
};

/*
 * Starts vgpud with that driver on a processor and waits until it is ready. From then
 * on the environment names it for programs.
 *
 * @driver:	as the configuration names it: null, soft, nvidia or a path
 * @n_warm:	workers kept ready
 *
 * Return: 0, or -1 after a line on stderr.
 */
int bench_host_start(struct bench_host *host, const char *driver, int cpu, int n_warm);

/* For those that start later. */
void bench_host_want_hugepages(void);
void bench_host_stop(struct bench_host *host);

/* Returns: the processor time vgpud and its workers have used, in ns. */
double bench_host_cpu_time(const struct bench_host *host);

/*
 * Calls
 */

enum bench_part {
	BENCH_EVERYTHING,
	BENCH_FIRST_USE, /* what only the first use in a process shows */
	BENCH_SAME_CORE, /* what differs when both sides share a processor */
};

/*
 * Measures that part through the CUDA library at @path, which this process keeps until it
 * ends. The process ends with a line on stderr if a call fails.
 *
 * @host:	the vgpud that serves the library, or NULL
 *
 * Return: 0, or -1 after a line on stderr: the library is none.
 */
int bench_calls(const struct bench_sink *sink, const char *path,
	const struct bench_host *host, enum bench_part part);

/*
 * Measures how a program starts and ends, each time in a new process (start.c).
 *
 * @driver:	of the private vgpud, or NULL: the driver is called directly
 *
 * Return: 0, or -1 after a line on stderr.
 */
int bench_start(const struct bench_sink *sink, const char *path, const char *driver);
