/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What vgpuctl stats makes of vgpud's histograms
 */

#include <stdlib.h>
#include <string.h>

#include "ctl/times.h"
#include "test.h"

/* A reply as it is unpacked, with one call. */
static VgpuCtl__Reply *reply_new(const char *name, const uint64_t *bounds,
	const uint64_t *counts, size_t n, uint64_t max_ns)
{
	VgpuCtl__CallTimes call = VGPU_CTL__CALL_TIMES__INIT, *calls[] = { &call };
	VgpuCtl__Times times = VGPU_CTL__TIMES__INIT;
	VgpuCtl__Reply reply = VGPU_CTL__REPLY__INIT, *unpacked;
	uint8_t packet[8192];
	const char *reason;
	size_t size;

	call.name = (char *)name;
	call.n_bounds = call.n_counts = n;
	call.bounds = (uint64_t *)bounds;
	call.counts = (uint64_t *)counts;
	call.max_ns = max_ns;
	call.total_ns = max_ns;
	times.n_calls = 1;
	times.calls = calls;
	times.n_sessions = 3;
	reply.result_case = VGPU_CTL__REPLY__RESULT_STATS;
	reply.stats = &times;
	size = vgpu_ctl__reply__get_packed_size(&reply);
	check(size <= sizeof(packet));
	vgpu_ctl__reply__pack(&reply, packet);
	unpacked = ctl_reply_new(packet, size, &reason);
	check(unpacked);
	return unpacked;
}

static const uint64_t bounds[] = { 7, 15, 1023, UINT64_MAX };

TEST(percentiles_are_bounds_or_the_longest_time)
{
	static const uint64_t counts[] = { 500, 400, 90, 10 };
	struct times times = { 0 };
	const VgpuCtl__CallTimes *call;

	check_eq(times_add(&times, reply_new("one", bounds, counts, 4, 5000)), CTL_OK);
	check_eq(times.n_sessions, 3);
	call = times.calls[0];
	check_eq(times_count(call), 1000);
	check_eq(times_count_up_to(call, 15), 900);
	check_eq(times_count_up_to(call, 6), 0);
	check_eq(times_percentile(call, 500), 7);
	check_eq(times_percentile(call, 501), 15);
	check_eq(times_percentile(call, 900), 15);
	check_eq(times_percentile(call, 990), 1023);
	check_eq(times_percentile(call, 1000), 5000);
	times_deinit(&times);
	check_eq(times.n_calls, 0);
}

TEST(made_up_counts_do_not_overflow)
{
	static const uint64_t counts[] = { 1, UINT64_MAX, UINT64_MAX, 1 };
	struct times times = { 0 };

	check_eq(times_add(&times, reply_new("one", bounds, counts, 4, 12)), CTL_OK);
	check(times_count(times.calls[0]) == UINT64_MAX);
	check_eq(times_percentile(times.calls[0], 990), 12);
	times_deinit(&times);
}

TEST(calls_are_sorted_by_any_column)
{
	static const char *const keys[] = { "time", "count", "p50", "p90", "p99", "max" };
	static const uint64_t few[] = { 1, 0, 0, 1 }, many[] = { 10, 10, 0, 0 };
	struct times times = { 0 };

	check_eq(times_add(&times, reply_new("b", bounds, few, 4, 5000)), CTL_OK);
	check_eq(times_add(&times, reply_new("c", bounds, many, 4, 14)), CTL_OK);
	check_eq(times_add(&times, reply_new("a", bounds, few, 4, 5000)), CTL_OK);
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const bool is_count = !strcmp(keys[i], "count");

		times_sort(&times, times_find_key(keys[i]));
		check_str(times.calls[is_count]->name, "a");
		check_str(times.calls[is_count + 1]->name, "b");
	}
	times_sort(&times, times_find_key("name"));
	check_str(times.calls[0]->name, "a");
	check_str(times.calls[2]->name, "c");
	check_eq(times_find_key("P50"), _TIMES_KEY_N);
	check_eq(times_find_key(""), _TIMES_KEY_N);
	times_deinit(&times);
	times_sort(&times, TIMES_TOTAL);
}
