/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings: where a replay differs from its recording
 */

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replay/findings.h"
#include "test.h"
#include "vgpu/g-calls.h"

static struct findings findings;

static void begin(void)
{
	memset(&findings, 0, sizeof(findings));
	findings.is_quiet = true;
}

static struct recording_end end_of(uint64_t number, uint32_t call, int32_t result)
{
	return (struct recording_end){
		.number = number,
		.call = call,
		.result = result,
		.reply_size = 4,
		.digest = 0x77,
	};
}

static struct recording_output output_of(
	uint64_t number, uint64_t offset, uint64_t digest)
{
	return (struct recording_output){
		.number = number,
		.offset = offset,
		.size = 256,
		.digest = digest,
	};
}

static void find(struct recording_end end)
{
	check(findings_add_end(&findings, &end));
}

static void expect(struct recording_end end)
{
	findings_expect_end(&findings, &end);
}

static void find_output(struct recording_output output)
{
	findings_add_output(&findings, &output);
}

static void expect_output(struct recording_output output)
{
	findings_expect_output(&findings, &output);
}

TEST(equal_results_are_no_difference)
{
	begin();
	find(end_of(2, VGPU_CALL_cuMemAlloc_v2, 0));
	find(end_of(1, VGPU_CALL_cuMemFree_v2, 1));
	check(findings_has_end(&findings, 1));
	check(!findings_has_end(&findings, 3));
	expect(end_of(1, VGPU_CALL_cuMemFree_v2, 1));
	check(!findings_has_end(&findings, 1));
	expect(end_of(2, VGPU_CALL_cuMemAlloc_v2, 0));
	check_eq(findings.n_compared, 2);
	check_eq(findings.n_different, 0);
	check_eq(findings.first, 0);
	check_eq(findings.n_ends, 0);
	/* Of one that has no end nothing is said here. */
	expect(end_of(3, VGPU_CALL_cuMemAlloc_v2, 0));
	check_eq(findings.n_compared, 2);
}

TEST(results_calls_and_replies_are_compared)
{
	struct recording_end end;

	begin();
	find(end_of(9, VGPU_CALL_cuMemAlloc_v2, 2));
	expect(end_of(9, VGPU_CALL_cuMemAlloc_v2, 0));
	check_eq(findings.n_different, 1);
	check_eq(findings.first, 9);
	end = end_of(5, VGPU_CALL_cuMemAlloc_v2, 0);
	end.digest++;
	find(end);
	expect(end_of(5, VGPU_CALL_cuMemAlloc_v2, 0));
	check_eq(findings.n_different, 2);
	/* The lowest number, whichever is found first. */
	check_eq(findings.first, 5);
	end = end_of(6, VGPU_CALL_cuMemAlloc_v2, 0);
	end.reply_size = UINT32_MAX;
	find(end);
	expect(end_of(6, VGPU_CALL_cuMemAlloc_v2, 0));
	find(end_of(7, VGPU_CALL_cuMemFree_v2, 0));
	expect(end_of(7, VGPU_CALL_cuMemAlloc_v2, 0));
	check_eq(findings.n_different, 4);
	check_eq(findings.first, 5);
	check_eq(findings.n_compared, 4);
}

TEST(what_depends_on_time_is_not_compared)
{
	static const uint32_t calls[] = { VGPU_CALL_cuStreamQuery, VGPU_CALL_cuEventQuery,
		VGPU_CALL_cuMemGetInfo_v2, VGPU_CALL_vgpuCallbackNext,
		VGPU_CALL_vgpuPrintFetch };
	const uint32_t n = sizeof(calls) / sizeof(*calls);

	begin();
	for (uint32_t i = 0; i < n; i++) {
		find(end_of(i + 1, calls[i], 600));
		expect(end_of(i + 1, calls[i], 0));
	}
	check_eq(findings.n_ignored, n);
	check_eq(findings.n_compared, 0);
	check_eq(findings.n_different, 0);
}

TEST(outputs_are_compared_in_any_order)
{
	begin();
	find_output(output_of(1, 0, 10));
	find_output(output_of(2, 512, 20));
	check(!findings_wait(&findings));
	expect_output(output_of(2, 512, 20));
	expect_output(output_of(3, 0, 30));
	/* That of the same call at another place is not its counterpart. */
	expect_output(output_of(1, 256, 10));
	check(findings_wait(&findings));
	find_output(output_of(3, 0, 31));
	check_eq(findings.n_outputs, 2);
	check_eq(findings.n_different, 1);
	check_eq(findings.first, 3);
	expect_output(output_of(1, 0, 10));
	check_eq(findings.n_outputs, 3);
	/* The one at 256 does not come. */
	check(findings_wait(&findings));
	findings_give_up(&findings);
	check(!findings_wait(&findings));
	check_eq(findings.n_different, 2);
	check_eq(findings.first, 1);
}

TEST(more_than_there_is_room_for)
{
	begin();
	for (uint32_t i = 0; i < FINDINGS_PENDING_MAX; i++)
		find(end_of(i + 1, VGPU_CALL_cuMemFree_v2, 0));
	check(!findings_add_end(
		&findings, &(struct recording_end){ .number = UINT64_MAX }));
	/* Outputs that the recording does not have are dropped; those that it has beyond
	 * that number are missed at once. */
	for (uint32_t i = 0; i < FINDINGS_PENDING_MAX + 1; i++) {
		find_output(output_of(i + 1, 0, 1));
		expect_output(output_of(i + 1, 256, 1));
	}
	check_eq(findings.n_different, 1);
	check_eq(findings.first, FINDINGS_PENDING_MAX + 1);
	findings_give_up(&findings);
	check_eq(findings.n_different, FINDINGS_PENDING_MAX + 1);
	check_eq(findings.first, 1);
}

/* What is printed meanwhile. */
static char text[4096];

static void say(unsigned int n_lines_max)
{
	const int out = dup(STDOUT_FILENO), fd = memfd_create("test", MFD_CLOEXEC);

	begin();
	findings.is_quiet = false;
	findings.n_lines_max = n_lines_max;
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	findings_begin(&findings, 4, VGPU_CALL_cuMemcpyDtoH_v2);
	for (uint64_t i = 3; i < 6; i++) {
		find(end_of(i, VGPU_CALL_cuMemAlloc_v2, 2));
		expect(end_of(i, VGPU_CALL_cuMemAlloc_v2, 0));
	}
	expect_output(output_of(4, 0, 1));
	findings_give_up(&findings);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	memset(text, 0, sizeof(text));
	check(pread(fd, text, sizeof(text) - 1, 0) >= 0);
	close(fd);
	close(out);
}

TEST(lines_say_which_call_differs_and_how)
{
	say(10);
	check(strstr(text,
		"call #3 cuMemAlloc_v2: it returns CUDA_ERROR_OUT_OF_MEMORY, and "
		"returned CUDA_SUCCESS when it was recorded\n"));
	check(strstr(text,
		"call #4 cuMemcpyDtoH_v2: its copy of 256 bytes does not complete\n"));
	check_eq(findings.n_different, 4);
	/* There may be many. */
	say(1);
	check(strstr(text, "call #3 "));
	check(!strstr(text, "call #4 "));
	check_eq(findings.n_different, 4);
	say(0);
	check_str(text, "");
}
