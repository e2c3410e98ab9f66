/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results: from samples to a median and its spread, and from there to paper
 */

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench.h"

const struct bench_size bench_sizes[] = {
	{ "4kib", 4 * BENCH_KIB },
	{ "64kib", 64 * BENCH_KIB },
	{ "1mib", BENCH_MIB },
	{ "64mib", 64 * BENCH_MIB },
	{ "1gib", BENCH_GIB },
	{ NULL, 0 },
};

void bench_sample(struct bench_samples *samples, double value)
{
	if (samples->n < BENCH_SAMPLES_MAX)
		samples->value[samples->n++] = value;
}

bool bench_wanted(const struct bench_options *options, const char *name)
{
	return !options->only || !strncmp(name, options->only, strlen(options->only));
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

void bench_report(const struct bench_sink *sink, const char *name, const char *unit,
	struct bench_samples *samples)
{
	struct bench_result result = { .n = samples->n };
	ssize_t n;

	if (!samples->n)
		return;
	qsort(samples->value, samples->n, sizeof(samples->value[0]), compare);
	snprintf(result.name, sizeof(result.name), "%s", name);
	snprintf(result.unit, sizeof(result.unit), "%s", unit);
	snprintf(result.driver, sizeof(result.driver), "%s", sink->driver);
	result.median = quantile(samples, 0.5);
	result.p10 = quantile(samples, 0.1);
	result.p90 = quantile(samples, 0.9);
	/* One result is far below PIPE_BUF: it is written whole or not at all. */
	n = write(sink->fd, &result, sizeof(result));
	if (n != sizeof(result))
		fprintf(stderr, "vgpu-bench: %s is lost: %s\n", name, strerror(errno));
}

int bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) < 0 ? -errno : 0;
}

/*
 * Paper
 */

static const struct {
	double least;
	const char *prefix;
} steps[] = { { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" }, { 0, "" } };

/* A figure as people read it: 1.25 us, 5.10 M/s, 8.90 GB/s. */
static const char *readable(char *buffer, size_t size, const char *unit, double value)
{
	size_t i = 0;

	if (!strcmp(unit, "ns")) {
		if (value >= 1e6)
			snprintf(buffer, size, "%.2f ms", value / 1e6);
		else if (value >= 1e3)
			snprintf(buffer, size, "%.2f us", value / 1e3);
		else
			snprintf(buffer, size, "%.1f ns", value);
		return buffer;
	}
	while (value < steps[i].least)
		i++;
	snprintf(buffer, size, "%.2f %s%s", value / (steps[i].least ? steps[i].least : 1),
		steps[i].prefix, strcmp(unit, "B/s") ? "/s" : "B/s");
	return buffer;
}

void bench_print_table(FILE *file, const struct bench_result *results, size_t n)
{
	char median[32], p10[32], p90[32];

	fprintf(file, "%-28s %-14s %14s %14s %14s %5s\n", "name", "driver", "median",
		"p10", "p90", "n");
	for (size_t i = 0; i < n; i++) {
		const struct bench_result *result = &results[i];

		fprintf(file, "%-28s %-14s %14s %14s %14s %5u\n", result->name,
			result->driver,
			readable(median, sizeof(median), result->unit, result->median),
			readable(p10, sizeof(p10), result->unit, result->p10),
			readable(p90, sizeof(p90), result->unit, result->p90), result->n);
	}
}

/* The processor's name as the kernel tells it; it holds nothing JSON would escape. */
static void read_cpu(char *buffer, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[256], *start;

	snprintf(buffer, size, "unknown");
	while (file && fgets(line, sizeof(line), file)) {
		start = strchr(line, ':');
		if (strncmp(line, "model name", 10) || !start)
			continue;
		line[strcspn(line, "\n\"\\")] = '\0';
		snprintf(buffer, size, "%s", start + 1 + strspn(start + 1, " "));
		break;
	}
	if (file)
		fclose(file);
}

void bench_print_json(FILE *file, const struct bench_options *options,
	const struct bench_result *results, size_t n)
{
	struct utsname name;
	double load = 0;
	char cpu[128];

	read_cpu(cpu, sizeof(cpu));
	uname(&name);
	getloadavg(&load, 1);
	fprintf(file,
		"{\"machine\": {\"cpu\": \"%s\", \"cpus\": %ld, \"kernel\": \"%s\", "
		"\"memory\": %llu, \"load\": %.2f, \"guest_cpu\": %d, \"host_cpu\": %d, "
		"\"quick\": %s},\n \"results\": [",
		cpu, sysconf(_SC_NPROCESSORS_ONLN), name.release,
		(unsigned long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE), load,
		options->guest_cpu, options->host_cpu, options->quick ? "true" : "false");
	for (size_t i = 0; i < n; i++)
		fprintf(file,
			"%s\n  {\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.10g, "
			"\"p10\": %.10g, \"p90\": %.10g, \"n\": %u, \"driver\": \"%s\"}",
			i ? "," : "", results[i].name, results[i].unit, results[i].median,
			results[i].p10, results[i].p90, results[i].n, results[i].driver);
	fprintf(file, "\n]}\n");
}
