/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paper: results as a table and as JSON
 */

#include <sys/resource.h>
#include <string.h>

#include "bench.h"

static const struct {
	double least;
	const char *prefix;
} steps[] = { { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" }, { 0, "" } };

/* A figure as people read it: 1.25 us, 5.10 M/s, 8.90 GB/s, 0.3 %. */
static const char *readable(char *buffer, size_t size, const char *unit, double value)
{
	size_t i = 0;

	if (!strcmp(unit, "cpu")) {
		snprintf(buffer, size, "%.2f %%", 100 * value);
		return buffer;
	}
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

void bench_print_table(FILE *file, const struct bench_results *results)
{
	char median[32], p10[32], p90[32], ratio[64], limit[2][BENCH_NAME_MAX];

	fprintf(file, "%-30s %-14s %12s %12s %12s %4s  %s\n", "name", "driver", "median",
		"p10", "p90", "n", "ratio to the limit");
	for (size_t i = 0; i < results->n; i++) {
		const struct bench_result *result = &results->result[i];
		double times = bench_ratio(results, result);

		if (!result->n) {
			fprintf(file, "%-30s %-14s %s\n", result->name, result->driver,
				result->note);
			continue;
		}
		snprintf(ratio, sizeof(ratio), times ? "%.2f " : "", times);
		fprintf(file, "%-30s %-14s %12s %12s %12s %4u  %s%s\n", result->name,
			result->driver,
			readable(median, sizeof(median), result->unit, result->median),
			readable(p10, sizeof(p10), result->unit, result->p10),
			readable(p90, sizeof(p90), result->unit, result->p90), result->n,
			ratio, times && bench_limit_of(result, limit) ? limit[1] : "");
	}
}

static void print_result(FILE *file, const struct bench_results *results,
	const struct bench_result *result)
{
	double ratio = bench_ratio(results, result);
	char limit[2][BENCH_NAME_MAX];

	fprintf(file, "{\"name\": \"%s\", \"driver\": \"%s\", \"unit\": \"%s\", ",
		result->name, result->driver, result->unit);
	if (!result->n) {
		fprintf(file, "\"n\": 0, \"note\": \"%s\"}", result->note);
		return;
	}
	fprintf(file, "\"median\": %.10g, \"p10\": %.10g, \"p90\": %.10g, \"n\": %u",
		result->median, result->p10, result->p90, result->n);
	if (ratio && bench_limit_of(result, limit))
		fprintf(file, ", \"limit\": \"%s/%s\", \"ratio\": %.6g", limit[0],
			limit[1], ratio);
	fprintf(file, "}");
}

void bench_print_json(FILE *file, const struct bench_options *options,
	const struct bench_machine *machine, const struct bench_results *results)
{
	fprintf(file, "{\"version\": 1,\n \"machine\": {");
	bench_print_machine(file, machine);
	fprintf(file,
		"\"nice\": %d, \"guest_cpu\": %d, \"host_cpu\": %d, "
		"\"quick\": %s},\n \"results\": [",
		getpriority(PRIO_PROCESS, 0), options->guest_cpu, options->host_cpu,
		options->quick ? "true" : "false");
	for (size_t i = 0; i < results->n; i++) {
		fprintf(file, "%s\n  ", i ? "," : "");
		print_result(file, results, &results->result[i]);
	}
	fprintf(file, "\n]}\n");
}
