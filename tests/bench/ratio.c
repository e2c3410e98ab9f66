/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which row a figure is judged by
 *
 * A limit is a row of the same run: of the machine, of the same driver in the program's
 * own process ("direct"), or of the same column. A ratio is the figure divided by it,
 * so a time is well near 1 and above, a rate and a bandwidth near 1 and below.
 */

#include <string.h>

#include "bench.h"

static const struct {
	const char *begin;  /* of the name that is judged */
	const char *driver; /* whose row; "direct", or "same" for the figure's own */
	const char *name;   /* the row; NULL: of the same name. It may end in '_' */
} limits[] = {
	{ "sync_null_call_same_core", "machine", "eventfd_wake_same_core" },
	{ "async_launch_same_core", "same", "async_launch" },
	{ "launch_rate_same_core", "same", "launch_rate" },
	{ "launch_synchronize_same_core", "machine", "eventfd_wake_same_core" },
	{ "sync_null_call", "machine", "spin_round_trip" },
	{ "call_asleep", "machine", "eventfd_wake_cross" },
	{ "async_launch", "machine", "ring_enqueue" },
	{ "launch_rate_threads_", "same", "launch_rate_threads_1" },
	{ "launch_rate", "machine", "ring_rate" },
	{ "event_record", "machine", "ring_enqueue" },
	{ "event_query_done", "machine", "cached_load" },
	{ "stream_query_done", "machine", "cached_load" },
	{ "stream_synchronize_done", "machine", "cached_load" },
	{ "pool_alloc_free", "machine", "ring_enqueue" },
	{ "kernels_with_records", "same", "kernels_back_to_back" },
	{ "latency_d2h_4kib", "machine", "spin_round_trip" },
	{ "nvml_memory_info", "machine", "empty_syscall" },
	{ "nvml_device_count", "machine", "cached_load" },
	{ "small_h2d_async_4kib", "machine", "memcpy_4kib" },
	{ "copy_h2d_pageable_", "machine", "memcpy_" },
	{ "copy_d2h_pageable_", "machine", "memcpy_" },
	{ "start_init_", "direct", "start_init" },
	{ "start_context_", "direct", "start_context" },
	{ "start_launch_", "direct", "start_launch" },
	{ "start_exit_", "direct", "start_exit" },
	{ "start_image_", "direct", "start_image" },
	{ "wait_cpu_host", "direct", "wait_cpu_guest" },
	{ "launch_synchronize", "direct", NULL },
	{ "kernels_back_to_back", "direct", NULL },
	{ "mixed_iteration", "direct", NULL },
	{ "eager_iteration", "direct", NULL },
	{ "graph_iteration", "direct", NULL },
	{ "copy_", "direct", NULL },
	{ "pin_1gib", "direct", "pin_1gib" },
	{ "wait_cpu_guest", "direct", NULL },
};

bool bench_limit_of(const struct bench_result *result, char names[2][BENCH_NAME_MAX])
{
	size_t length = strlen(result->driver);
	const char *name, *driver;

	if (!strcmp(result->driver, "machine") ||
		(length > 7 && !strcmp(result->driver + length - 7, "-direct")))
		return false;
	/* The null driver moves no data: its copies are not compared. */
	if (!strcmp(result->driver, "null") && strstr(result->name, "_pinned_"))
		return false;
	for (size_t i = 0; i < BENCH_N(limits); i++) {
		length = strlen(limits[i].begin);
		if (strncmp(result->name, limits[i].begin, length))
			continue;
		driver = limits[i].driver;
		name = limits[i].name ? limits[i].name : result->name;
		if (!strcmp(driver, "direct"))
			snprintf(names[0], BENCH_NAME_MAX, "%s-direct", result->driver);
		else
			snprintf(names[0], BENCH_NAME_MAX, "%s",
				strcmp(driver, "same") ? driver : result->driver);
		snprintf(names[1], BENCH_NAME_MAX, "%s%s", name,
			name[strlen(name) - 1] == '_' ? result->name + length : "");
		return true;
	}
	return false;
}

double bench_ratio(const struct bench_results *results, const struct bench_result *result)
{
	char names[2][BENCH_NAME_MAX];

	if (!result->n || !bench_limit_of(result, names))
		return 0;
	for (size_t i = 0; i < results->n; i++) {
		const struct bench_result *limit = &results->result[i];

		if (!limit->n || limit->median <= 0 || strcmp(limit->driver, names[0]) ||
			strcmp(limit->name, names[1]))
			continue;
		if (!strcmp(limit->unit, result->unit))
			return result->median / limit->median;
		/* One copy of 4 KiB compared with the bandwidth of many. */
		return result->median / (4 * BENCH_KIB / limit->median * 1e9);
	}
	return 0;
}
