/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faulting kernels: the report, and that no other memory is changed
 */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "exec-harness.h"
#include "test.h"

#define HEADER ".version 8.8\n.target sm_120\n.address_size 64\n"
#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *

/* The body begins in line 8 of the text; the faulting instruction is in its second
 * line. */
#define ENTRY(_body)                                                                     \
	HEADER ".visible .entry k(.param .u64 p) {\n"                                    \
	       ".reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>;\n"                \
	       ".shared .align 16 .b8 s[256];\n"                                         \
	       "ld.param.u64 %rd0, [p]; mov.u32 %r0, %tid.x; mov.u32 %r1, "              \
	       "%ctaid.x;\n" _body "ret; }\n"

struct fault_row {
	const char *ptx;
	int code;
	uint32_t block, thread;
};

static void check_fault(const struct fault_row *row)
{
	CLEAN_RIG rig = rig_new(row->ptx);
	void *memory = rig_alloc(rig, 4096);
	int r = rig_run(rig, "k", 3, 96, &memory, sizeof(memory));

	if (r != row->code)
		test_fail(__FILE__, __LINE__, "%s: gives %d, not %d", row->ptx, r,
			row->code);
	check_eq(rig->fault.code, row->code);
	check_eq(rig->fault.block[0], row->block);
	check_eq(rig->fault.thread[0], row->thread);
	check_eq(rig->fault.line, 9);
	check_str(rig->fault.kernel, "k");
	check(strstr(rig->fault.text, " in k"));
}

#define LAST_THREADS "setp.lt.u32 %p1, %r0, 77; setp.lt.or.u32 %p1, %r1, 2, %p1;\n"

TEST(a_fault_names_kernel_block_thread_and_line)
{
	static const struct fault_row rows[] = {
		{ ENTRY(LAST_THREADS "@!%p1 st.global.u32 [%rd0+0x40000000], %r0;\n"),
			700, 2, 77 },
		{ ENTRY(LAST_THREADS "@!%p1 ld.global.u32 %r4, [16];\n"), 700, 2, 77 },
		{ ENTRY(LAST_THREADS "@!%p1 ld.global.u32 %r4, [%rd0+2];\n"), 716, 2,
			77 },
		{ ENTRY(LAST_THREADS
			  "@!%p1 ld.global.v4.u32 {%r4,%r5,%r6,%r7}, [%rd0+8];\n"),
			716, 2, 77 },
		{ ENTRY(LAST_THREADS "@!%p1 st.shared.u32 [s+256], %r0;\n"), 700, 2, 77 },
		{ ENTRY(LAST_THREADS "@!%p1 ld.shared.u64 %rd4, [s+252];\n"), 716, 2,
			77 },
		{ ENTRY(LAST_THREADS "@!%p1 ld.shared.u64 %rd4, [%r4+-8];\n"), 700, 2,
			77 },
		{ ENTRY(LAST_THREADS "@!%p1 atom.global.add.u32 %r4, [%rd0+1], 1;\n"),
			716, 2, 77 },
		{ ENTRY(LAST_THREADS "@!%p1 atom.shared.add.u32 %r4, [s+256], 1;\n"), 700,
			2, 77 },
		{ ENTRY(LAST_THREADS "@!%p1 ld.u32 %r4, [%rd9];\n"), 700, 2, 77 },
		{ ENTRY(LAST_THREADS "@!%p1 ld.local.u32 %r4, [%rd9+8];\n"), 700, 2, 77 },
		{ ENTRY(LAST_THREADS "@!%p1 trap;\n"), 719, 2, 77 },
		{ ENTRY(LAST_THREADS "@!%p1 bar.sync %r0;\n"), 715, 2, 77 },
		{ ENTRY("\nst.global.u32 [%rd0+0x40000000], %r0;\n"), 700, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_fault(&rows[i]);
}

static void describe(void *data, uint64_t address, char *text, size_t size)
{
	snprintf(text, size, "%llu bytes into %s",
		(unsigned long long)(address - (uintptr_t)data), "the test's memory");
}

TEST(a_fault_names_the_source_and_what_is_near)
{
	static const char ptx[] =
		ENTRY(".loc 1 7 3\n.loc 1 2 9, function_name f, inlined_at 1 7 3\n"
		      "st.global.u32 [%rd0+RIG], %r0;\n") ".file 1 \"/tmp/a.cu\"\n";
	char text[sizeof(ptx) + 16];
	const char *at = strstr(ptx, "RIG");
	CLEAN_RIG rig = NULL;
	void *memory;

	snprintf(text, sizeof(text), "%.*s%llu%s", (int)(at - ptx), ptx,
		(unsigned long long)(RIG_MEMORY + 4), at + 3);
	rig = rig_new(text);
	rig->space.describe = describe;
	rig->space.data = memory = rig->memory;
	check_eq(rig_run(rig, "k", 1, 32, &memory, sizeof(memory)), 700);
	check(strstr(rig->fault.text,
		"block (0, 0, 0), thread (0, 0, 0), line 10, a.cu:2, inlined at a.cu:7; "
		"the address is 8388612 bytes into the test's memory"));
}

TEST(a_page_without_permission_faults)
{
	static const char ptx[] = ENTRY("\nst.global.u32 [%rd0], %r0;\n");
	CLEAN_RIG rig = rig_new(ptx);
	uint8_t *memory = rig->memory + SOFTGPU_PAGE_SIZE;

	rig->pages[2] = SOFTGPU_READ;
	check_eq(rig_run(rig, "k", 1, 32, &memory, sizeof(memory)), 700);
	check_eq(rig->fault.address, (uintptr_t)memory);
	check_eq(*(uint32_t *)memory, 0);
	rig->pages[2] = SOFTGPU_READ | SOFTGPU_WRITE;
	check_eq(rig_run(rig, "k", 1, 32, &memory, sizeof(memory)), 0);
}

/* The access of a warp that is linear but runs over the end of the memory. */
TEST(the_lane_past_the_end_is_the_one_at_fault)
{
	static const char ptx[] =
		ENTRY("mul.wide.u32 %rd1, %r0, 8; add.u64 %rd1, %rd1, %rd0;\n"
		      "st.global.u64 [%rd1], %rd0;\n");
	CLEAN_RIG rig = rig_new(ptx);
	uint8_t *memory = rig->memory + RIG_MEMORY - 80;

	check_eq(rig_run(rig, "k", 1, 32, &memory, sizeof(memory)), 700);
	check_eq(rig->fault.thread[0], 10);
	check_eq(rig->fault.address, (uintptr_t)rig->memory + RIG_MEMORY);
}

TEST(barriers_that_cannot_open_end_the_launch)
{
	static const char ptx[] =
		ENTRY("setp.lt.u32 %p1, %r0, 32; @%p1 bra A;\n"
		      "bar.sync 1, 96; bra B;\nA: bar.sync 2, 96;\nB:\n");
	CLEAN_RIG rig = rig_new(ptx);
	void *memory = rig->memory;

	check_eq(rig_run(rig, "k", 1, 96, &memory, sizeof(memory)), 702);
}

TEST(an_endless_loop_ends_at_the_deadline)
{
	static const char ptx[] = ENTRY("A: bra A;\n");
	CLEAN_RIG rig = rig_new(ptx);
	void *memory = rig->memory;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	rig->deadline_ns =
		(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + 1000000u;
	check_eq(rig_run(rig, "k", 1, 96, &memory, sizeof(memory)), 702);
}

TEST(a_stop_flag_ends_running_blocks)
{
	static const char ptx[] =
		ENTRY("A: ld.volatile.global.u32 %r4, [%rd0]; bra A;\n");
	CLEAN_RIG rig = rig_new(ptx);
	void *memory = rig_alloc(rig, 64);
	uint32_t stop = 709;
	struct softgpu_launch launch = {
		.kernel = rig_kernel(rig, "k"),
		.grid = { 2, 1, 1 },
		.block = { 64, 1, 1 },
		.params = &memory,
		.params_size = sizeof(memory),
		.space = &rig->space,
		.stop = &stop,
	};

	check_eq(softgpu_run_blocks(rig->scratch, &launch, 0, 2, &rig->fault), 709);
}

TEST(unsupported_instructions_are_named)
{
	struct softgpu_message message = {};
	static const char strange[] = ENTRY("wgmma.fence.sync.aligned;\n");
	static const char other[] = ENTRY("tcgen05.fence::before_thread_sync;\n");
	static const char misfit[] = ENTRY("add.u64 %r4, %r0, %r1;\n");
	/* A special register that is a predicate, in place of a word. */
	static const char predicate[] = ENTRY("mov.u32 %r4, %is_explicit_cluster;\n");
	static const char missing[] =
		HEADER ".extern .func f();\n.entry k() { call f, (); ret; }\n";

	check_eq(rig_lookup(strange, "k", &message), 801);
	check(strstr(message.text, "wgmma.fence") && strstr(message.text, "line 8"));
	check(strstr(message.text, "sm_90a alone"));
	check_eq(rig_lookup(other, "k", &message), 801);
	check(strstr(message.text, "tcgen05.fence") && strstr(message.text, "sm_110a"));
	check_eq(rig_lookup(misfit, "k", &message), 218);
	check(strstr(message.text, "line 8"));
	check_eq(rig_lookup(predicate, "k", &message), 218);
	check(strstr(message.text, "does not fit"));
	check_eq(rig_lookup(missing, "k", &message), 801);
	check(strstr(message.text, "not defined"));
	check_eq(rig_lookup(strange, "other", &message), 500);
}

TEST(impossible_launches_are_refused)
{
	static const char ptx[] =
		HEADER ".entry k(.param .u32 a) .maxntid 128, 1, 1 { ret; }\n"
		       ".entry big() { .shared .align 4 .b8 s[40000]; .reg .b32 %r;\n"
		       "ld.shared.u32 %r, [s]; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t a = 0;
	struct softgpu_launch good = {
		.kernel = rig_kernel(rig, "k"),
		.grid = { 1, 1, 1 },
		.block = { 64, 2, 1 },
		.params = &a,
		.params_size = sizeof(a),
		.space = &rig->space,
	};
	struct softgpu_launch launch = good;

	check_eq(softgpu_launch_check(&launch), 0);
	launch.block[1] = 3;
	check_eq(softgpu_launch_check(&launch), 1);
	launch = good;
	launch.grid[2] = 0;
	check_eq(softgpu_launch_check(&launch), 1);
	launch = good;
	launch.params_size = 3;
	check_eq(softgpu_launch_check(&launch), 1);
	launch = good;
	launch.kernel = rig_kernel(rig, "big");
	check_eq(softgpu_kernel_info(launch.kernel)->static_shared_size, 40000);
	launch.dynamic_shared_size = SOFTGPU_SHARED_MAX - 40000;
	check_eq(softgpu_launch_check(&launch), 0);
	launch.dynamic_shared_size++;
	check_eq(softgpu_launch_check(&launch), 701);
}
