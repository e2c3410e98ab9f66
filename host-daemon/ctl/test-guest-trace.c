/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of a guest's trace, and its clock
 */

#include <stdio.h>
#include <string.h>

#include "ctl/guest-trace.h"
#include "test.h"

TEST(a_line_has_a_time_a_thread_a_call_and_a_duration)
{
	struct guest_call call;

	check(guest_trace_parse("1700000000.000123 71/72 cuMemAlloc_v2(dptr=0x1[0x2], "
				"text=\" <9.0>\") = CUDA_SUCCESS <0.000005006> 1 sent\n",
		&call));
	check_str(call.name, "cuMemAlloc_v2");
	check_eq(call.pid, 71);
	check_eq(call.tid, 72);
	check_eq(call.begin_ns, 1700000000000123000);
	check_eq(call.end_ns - call.begin_ns, 5006);
}

TEST(what_is_no_such_line_is_refused)
{
	static const char *const lines[] = {
		"",
		"\n",
		"1700000000.000123",
		"1700000000.000123 71/72 cuInit() = CUDA_SUCCESS\n",
		"1700000000.000123 71/72 cuInit() = CUDA_SUCCESS <>\n",
		"1700000000.000123 71/72 cuInit() = CUDA_SUCCESS <0.1>\n",
		"1700000000.123 71/72 cuInit() = CUDA_SUCCESS <0.000000001>\n",
		"99999999999999999999.000123 1/2 cuInit() = A <0.000000001>\n",
		"99999999999.000123 1/2 cuInit() = A <0.000000001>\n",
		"-1.000123 1/2 cuInit() = A <0.000000001>\n",
		"1.000123 1/99999999999 cuInit() = A <0.000000001>\n",
		"1.000123 1/2 \"name\"() = A <0.000000001>\n",
		"1.000123 1/2 (x) = A <0.000000001>\n",
		"1.000123 1/2 cuInit = A <0.000000001>\n",
	};
	struct guest_call call;

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		check(!guest_trace_parse(lines[i], &call));
}

/* Calls of a program at times that follow no pattern, as guest and host see them. */
static void make(struct guest_waits *host, struct guest_waits *guest, int64_t offset,
	size_t n, size_t first_on_host)
{
	uint32_t state = 5;
	uint64_t at = 50000000000000;

	host->n = guest->n = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t there, back, work;

		state = state * 1664525 + 1013904223;
		there = 2000 + (state >> 20);
		back = 2000 + (state >> 21);
		work = 1000 + (state >> 15);
		at += 30000 + (state >> 14);
		guest_waits_add(guest, i % 3 ? "cuCtxSynchronize" : "cuStreamSynchronize",
			at / 1000 * 1000, at / 1000 * 1000 + there + work + back);
		if (i >= first_on_host)
			guest_waits_add(host,
				i % 3 ? "cuCtxSynchronize" : "cuStreamSynchronize",
				(uint64_t)((int64_t)(at + there) + offset),
				(uint64_t)((int64_t)(at + there + work) + offset));
		at += there + work + back;
	}
}

TEST(the_difference_of_the_clocks_is_found_within_its_error)
{
	static struct guest_waits host, guest;
	const int64_t offset = -40000000000000 + 123456789;
	int64_t found, error;

	for (size_t first = 0; first < 300; first += 60) {
		make(&host, &guest, offset, 400, first);
		check_eq(
			guest_trace_match(&host, &guest, -40000000000000, &found, &error),
			400 - first);
		check(error < 10000);
		check(found >= offset - error && found <= offset + error);
	}
}

TEST(of_many_calls_the_longest_are_kept)
{
	static struct guest_waits waits;

	waits.n = 0;
	for (uint64_t i = 0; i < 3 * GUEST_TRACE_PAIRS; i++)
		guest_waits_add(&waits, "cuA", i * 10000, i * 10000 + (i * 7) % 1536);
	check_eq(waits.n, GUEST_TRACE_PAIRS);
	for (size_t i = 0; i < waits.n; i++)
		check(waits.list[i].end_ns - waits.list[i].begin_ns >= 1024);
	guest_waits_add(&waits, "cuA", 5, 4);
	guest_waits_add(&waits, "cuA", 0, UINT64_MAX);
	check_eq(waits.n, GUEST_TRACE_PAIRS);
}

TEST(without_calls_that_match_there_is_none)
{
	static struct guest_waits host, guest;
	int64_t found, error;

	host.n = guest.n = 0;
	check_eq(guest_trace_match(&host, &guest, 7, &found, &error), 0);
	guest_waits_add(&host, "cuA", 100, 200000);
	guest_waits_add(&guest, "cuB", 50, 250);
	check_eq(guest_trace_match(&host, &guest, 7, &found, &error), 0);
	/* Shorter in the guest than on the host. */
	guest_waits_add(&guest, "cuA", 1000000, 1000010);
	guest_waits_add(&host, "cuA", 2000000, 2900000);
	check_eq(guest_trace_match(&host, &guest, 7, &found, &error), 0);
	check_eq(found, 7);
}
