/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results: from samples to a median and its spread
 */

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench.h"

/* A row takes no more samples after that long, once it has the least. */
#define ROW_NS 1e9
#define SAMPLES_MIN 3u

const struct bench_size bench_sizes[] = {
	{ "256b", 256 },
	{ "1kib", BENCH_KIB },
	{ "4kib", 4 * BENCH_KIB },
	{ "16kib", 16 * BENCH_KIB },
	{ "64kib", 64 * BENCH_KIB },
	{ "256kib", 256 * BENCH_KIB },
	{ "1mib", BENCH_MIB },
	{ "4mib", 4 * BENCH_MIB },
	{ "16mib", 16 * BENCH_MIB },
	{ "64mib", 64 * BENCH_MIB },
	{ "1gib", BENCH_GIB },
	{ NULL, 0 },
};

void bench_sample(struct bench_samples *samples, double value)
{
	if (samples->n < BENCH_SAMPLES_MAX)
		samples->value[samples->n++] = value;
}

bool bench_more(struct bench_samples *samples, unsigned int wanted)
{
	if (!samples->begun)
		samples->begun = bench_now();
	if (samples->n >= wanted)
		return false;
	return samples->n < SAMPLES_MIN || bench_now() - samples->begun < ROW_NS;
}

bool bench_wanted(const struct bench_options *options, const char *name)
{
	for (unsigned int i = 0; i < options->n_only; i++)
		if (!strncmp(name, options->only[i], strlen(options->only[i])))
			return true;
	return !options->n_only;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The sample at that share of the sorted ones, the nearest rank. */
static double quantile(const struct bench_samples *samples, double share)
{
	return samples->value[lround(share * (samples->n - 1))];
}

static void send(const struct bench_sink *sink, struct bench_result *result,
	const char *name, const char *unit)
{
	ssize_t n;

	snprintf(result->name, sizeof(result->name), "%s", name);
	snprintf(result->unit, sizeof(result->unit), "%s", unit);
	snprintf(result->driver, sizeof(result->driver), "%s", sink->driver);
	if (sink->options->verbose)
		fprintf(stderr, "%s/%s\n", result->driver, result->name);
	/* One result is far below PIPE_BUF: it is written whole or not at all. */
	n = write(sink->fd, result, sizeof(*result));
	if (n != sizeof(*result))
		fprintf(stderr, "vgpu-bench: %s is lost: %s\n", name, strerror(errno));
}

void bench_report(const struct bench_sink *sink, const char *name, const char *unit,
	struct bench_samples *samples)
{
	struct bench_result result = { .n = samples->n };

	if (!samples->n)
		return;
	qsort(samples->value, samples->n, sizeof(samples->value[0]), compare);
	result.median = quantile(samples, 0.5);
	result.p10 = quantile(samples, 0.1);
	result.p90 = quantile(samples, 0.9);
	send(sink, &result, name, unit);
}

void bench_report_none(const struct bench_sink *sink, const char *name, const char *unit,
	const char *why)
{
	struct bench_result result = {};

	snprintf(result.note, sizeof(result.note), "%s", why);
	send(sink, &result, name, unit);
}

void bench_take(struct bench_results *results, int fd)
{
	struct bench_result result;

	while (read(fd, &result, sizeof(result)) == sizeof(result))
		if (results->n < BENCH_RESULTS_MAX)
			results->result[results->n++] = result;
	close(fd);
}

pid_t bench_fork(void)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	/* The parent may have gone before the child asked. */
	if (!pid && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
		_exit(126);
	return pid;
}

int bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) < 0 ? -errno : 0;
}

bool bench_thread(pthread_t *threadp, int cpu, void *(*run)(void *), void *userdata)
{
	pthread_attr_t attr;
	cpu_set_t set;
	int r;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (pthread_attr_init(&attr))
		return false;
	r = pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	if (!r)
		r = pthread_create(threadp, &attr, run, userdata);
	pthread_attr_destroy(&attr);
	return !r;
}
