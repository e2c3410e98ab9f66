/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stats: the verb that shows how long calls took
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/output.h"
#include "ctl/times.h"

/* A time for people: "1.5us". */
static const char *text_of_time(uint64_t ns, char text[static 24])
{
	static const char *const units[] = { "us", "ms", "s" };
	double value = (double)ns / 1000;
	unsigned int unit = 0;

	if (ns < 1000) {
		snprintf(text, 24, "%" PRIu64 "ns", ns);
		return text;
	}
	/* What would be printed as 1000.0 has the next unit. */
	for (; unit < 2 && value >= 999.95; unit++)
		value /= 1000;
	snprintf(text, 24, "%.1f%s", value, units[unit]);
	return text;
}

static void print_call(const VgpuCtl__CallTimes *call)
{
	char total[24], p50[24], p90[24], p99[24], max[24];

	printf("%-34s %12" PRIu64 " %9s %9s %9s %9s %9s\n", call->name, times_count(call),
		text_of_time(call->total_ns, total),
		text_of_time(times_percentile(call, 500), p50),
		text_of_time(times_percentile(call, 900), p90),
		text_of_time(times_percentile(call, 990), p99),
		text_of_time(call->max_ns, max));
}

/* Pairs of the longest time, null: unknown, and the number of calls. */
static json_t *json_of_buckets(const VgpuCtl__CallTimes *call)
{
	json_t *array = json_array();

	for (size_t i = 0; i < call->n_bounds; i++)
		json_array_append_new(
			array, json_pack("[o, o]",
				       call->bounds[i] == UINT64_MAX
					       ? json_null()
					       : output_number(call->bounds[i]),
				       output_number(call->counts[i])));
	return array;
}

static json_t *json_of_call(const VgpuCtl__CallTimes *call)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "call", call->name,
		"count", output_number(times_count(call)), "total_ns",
		output_number(call->total_ns), "p50_ns",
		output_number(times_percentile(call, 500)), "p90_ns",
		output_number(times_percentile(call, 900)), "p99_ns",
		output_number(times_percentile(call, 990)), "max_ns",
		output_number(call->max_ns), "buckets", json_of_buckets(call));
}

static bool is_shown(const VgpuCtl__CallTimes *call, const struct ctl_options *options)
{
	return !options->call ||
	       !strncmp(call->name, options->call, strlen(options->call));
}

static enum ctl_status show(
	const struct times *times, const struct ctl_options *options, const char *vm)
{
	json_t *array = json_array();

	if (!options->is_json)
		printf("%-34s %12s %9s %9s %9s %9s %9s\n", "CALL", "COUNT", "TOTAL",
			"P50", "P90", "P99", "MAX");
	for (size_t i = 0; i < times->n_calls; i++) {
		if (!is_shown(times->calls[i], options))
			continue;
		if (options->is_json)
			json_array_append_new(array, json_of_call(times->calls[i]));
		else
			print_call(times->calls[i]);
	}
	if (options->is_json)
		return output_json(json_pack("{s:s, s:o, s:o}", "vm", vm, "sessions",
			output_number(times->n_sessions), "calls", array));
	json_decref(array);
	return output_end(CTL_OK);
}

/* A pid of the guest. Return: CTL_OK or CTL_USAGE. */
static enum ctl_status parse_process(const char *text, uint32_t *pidp)
{
	char *end;
	unsigned long pid;

	*pidp = 0;
	if (!text)
		return CTL_OK;
	pid = *text >= '1' && *text <= '9' ? strtoul(text, &end, 10) : 0;
	if (!pid || *end || pid > UINT32_MAX)
		return ctl_fail(CTL_USAGE, "'%s' is not the number of a process", text);
	*pidp = (uint32_t)pid;
	return CTL_OK;
}

enum ctl_status ctl_stats(const struct ctl_options *options, char **arguments)
{
	const enum times_key key =
		options->sort ? times_find_key(options->sort) : TIMES_TOTAL;
	struct client client;
	struct times times;
	enum ctl_status status;
	uint32_t pid;

	if (key == _TIMES_KEY_N)
		return ctl_fail(CTL_USAGE,
			"'%s' is no column to sort by: time, count, p50, p90, p99, max, "
			"name",
			options->sort);
	status = parse_process(options->process, &pid);
	if (!status)
		status = client_open(&client, options->socket);
	if (status)
		return status;
	status = times_take(&times, &client, arguments[0], pid);
	if (!status && pid && !times.n_sessions)
		status = ctl_fail(CTL_FAILED,
			"the machine has no process %u that uses the device", pid);
	if (!status) {
		times_sort(&times, key);
		status = show(&times, options, arguments[0]);
		times_deinit(&times);
	}
	client_close(&client);
	return status;
}
