/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of subroutines: recursion, pointers, lanes that part and meet, the stack
 */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "exec-harness.h"
#include "test.h"

#define HEADER ".version 8.8\n.target sm_120\n.address_size 64\n"
#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *

/* An entry that calls @_name(tid) and stores its result, and the sum with tid. */
#define ENTRY_OF(_name)                                                                  \
	".visible .entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"        \
	"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;\n"                                 \
	"mul.wide.u32 %rd2, %r1, 8; add.u64 %rd1, %rd1, %rd2;\n"                         \
	"{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r1;\n"                       \
	"call.uni (q), " _name ", (a); ld.param.b32 %r4, [q]; }\n"                       \
	"add.u32 %r5, %r4, %r1; st.global.v2.u32 [%rd1], {%r4, %r5}; ret; }\n"

static uint32_t fibonacci(uint32_t n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

/* Each lane has another depth, and a value of each width lives across the calls. */
#define FIBONACCI                                                                        \
	".func (.param .b32 r) fib(.param .b32 n) { .reg .b32 %r<9>;\n"                  \
	".reg .b64 %rd<9>;"                                                              \
	".reg .pred %p<3>; ld.param.u32 %r1, [n]; setp.lt.u32 %p1, %r1, 2;\n"            \
	"@%p1 bra SMALL; and.b32 %r2, %r1, 1; setp.eq.u32 %p2, %r2, 1;\n"                \
	"cvt.u64.u32 %rd1, %r1; sub.u32 %r3, %r1, 1;\n"                                  \
	"{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r3;\n"                       \
	"call.uni (q), fib, (a); ld.param.b32 %r4, [q]; }\n"                             \
	"cvt.u32.u64 %r5, %rd1; sub.u32 %r5, %r5, 2; @!%p2 bra EVEN;\n"                  \
	"{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r5;\n"                       \
	"call.uni (q), fib, (a); ld.param.b32 %r6, [q]; } bra ADD;\n"                    \
	"EVEN: { .param .b32 a; .param .b32 q; st.param.b32 [a], %r5;\n"                 \
	"call.uni (q), fib, (a); ld.param.b32 %r6, [q]; }\n"                             \
	"ADD: add.u32 %r4, %r4, %r6; st.param.b32 [r], %r4; ret;\n"                      \
	"SMALL: st.param.b32 [r], %r1; ret; }\n"

TEST(a_function_calls_itself_to_other_depths_in_each_lane)
{
	static const char ptx[] = HEADER FIBONACCI
		".visible .entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
		"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; rem.u32 %r2, %r1, 13;\n"
		"mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n"
		"{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r2;\n"
		"call.uni (q), fib, (a); ld.param.b32 %r4, [q]; }\n"
		"st.global.u32 [%rd1], %r4; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 512);

	rig->stack_size = 4096;
	rig_launch(rig, "k", 1, 100, &out, sizeof(out));
	for (uint32_t i = 0; i < 100; i++)
		check_eq(out[i], fibonacci(i % 13));
}

TEST(functions_call_each_other)
{
	static const char ptx[] =
		HEADER ".func (.param .b32 r) odd(.param .b32 n);\n"
		       ".func (.param .b32 r) even(.param .b32 n) { .reg .b32 %r<9>;\n"
		       ".reg .pred %p; ld.param.u32 %r1, [n]; setp.eq.u32 %p, %r1, 0;\n"
		       "@%p bra ZERO; sub.u32 %r2, %r1, 1;\n"
		       "{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r2;\n"
		       "call.uni (q), odd, (a); ld.param.b32 %r4, [q]; }\n"
		       "add.u32 %r4, %r4, 256; st.param.b32 [r], %r4; ret;\n"
		       "ZERO: st.param.b32 [r], 1; ret; }\n"
		       ".func (.param .b32 r) odd(.param .b32 n) { .reg .b32 %r<9>;\n"
		       ".reg .pred %p; ld.param.u32 %r1, [n]; setp.eq.u32 %p, %r1, 0;\n"
		       "@%p bra ZERO; sub.u32 %r2, %r1, 1;\n"
		       "{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r2;\n"
		       "call.uni (q), even, (a); ld.param.b32 %r4, [q]; }\n"
		       "add.u32 %r4, %r4, 256; st.param.b32 [r], %r4; ret;\n"
		       "ZERO: st.param.b32 [r], 0; ret; }\n" ENTRY_OF("even");
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 512);

	rig->stack_size = 8192;
	rig_launch(rig, "k", 1, 40, &out, sizeof(out));
	for (uint32_t i = 0; i < 40; i++) {
		check_eq(out[2 * i], 256 * i + !(i % 2));
		check_eq(out[2 * i + 1], 256 * i + !(i % 2) + i);
	}
}

/* Calls back to itself through the table it came from; lanes take different ways. */
TEST(a_pointer_may_lead_back_to_its_caller)
{
	static const char ptx[] = HEADER
		".func (.param .b32 r) twice(.param .b32 n);\n"
		".func (.param .b32 r) down(.param .b32 n);\n"
		".global .align 8 .u64 table[2] = {down, twice};\n"
		".func (.param .b32 r) twice(.param .b32 n) { .reg .b32 %r<9>;\n"
		"ld.param.u32 %r1, [n]; shl.b32 %r1, %r1, 1; st.param.b32 [r], %r1;\n"
		"ret; }\n"
		".func (.param .b32 r) down(.param .b32 n) { .reg .b32 %r<9>;\n"
		".reg .b64 %rd<9>; .reg .pred %p<3>; ld.param.u32 %r1, [n];\n"
		"setp.lt.u32 %p1, %r1, 3; selp.u64 %rd1, 8, 0, %p1;\n"
		"mov.u64 %rd2, table; add.u64 %rd1, %rd1, %rd2;\n"
		"ld.global.u64 %rd3, [%rd1]; sub.u32 %r2, %r1, 1;\n"
		"{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r2;\n"
		"proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
		"call (q), %rd3, (a), proto; ld.param.b32 %r4, [q]; }\n"
		"add.u32 %r4, %r4, %r1; st.param.b32 [r], %r4; ret; }\n" ENTRY_OF("down");
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 512), expected;

	rig->stack_size = 8192;
	rig_launch(rig, "k", 1, 32, &out, sizeof(out));
	for (uint32_t i = 0; i < 32; i++) {
		expected = 0;
		for (uint32_t n = i;; n--) {
			expected += n;
			if (n < 3) {
				expected += 2 * (n - 1);
				break;
			}
		}
		check_eq(out[2 * i], expected);
	}
}

/* 20 bytes by value there and back; the callee's own copy changes, the caller's not. */
TEST(blobs_go_by_value)
{
	static const char ptx[] = HEADER
		".func (.param .align 4 .b8 r[20]) f(.param .align 4 .b8 n[20]) {\n"
		".reg .b32 %r<9>; .reg .pred %p; ld.param.u32 %r1, [n];\n"
		"ld.param.u32 %r2, [n+16]; setp.eq.u32 %p, %r1, 0; @%p bra OUT;\n"
		"sub.u32 %r3, %r1, 1; add.u32 %r4, %r2, %r1;\n"
		"{ .param .align 4 .b8 a[20]; .param .align 4 .b8 q[20];\n"
		"st.param.b32 [a], %r3; st.param.b32 [a+16], %r4;\n"
		"call.uni (q), f, (a); ld.param.b32 %r5, [q+16];\n"
		"ld.param.b32 %r6, [q]; ld.param.b32 %r7, [a+16];\n"
		"sub.u32 %r7, %r7, %r4; add.u32 %r5, %r5, %r7; }\n"
		"ld.param.u32 %r8, [n+16]; sub.u32 %r8, %r8, %r2;\n"
		"add.u32 %r6, %r6, 1; add.u32 %r6, %r6, %r8;\n"
		"st.param.b32 [r], %r6; st.param.b32 [r+16], %r5; ret;\n"
		"OUT: st.param.b32 [r], 100; st.param.b32 [r+16], %r2; ret; }\n"
		".visible .entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
		"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;\n"
		"mul.wide.u32 %rd2, %r1, 8; add.u64 %rd1, %rd1, %rd2;\n"
		"{ .param .align 4 .b8 a[20]; .param .align 4 .b8 q[20];\n"
		"st.param.b32 [a], %r1; st.param.b32 [a+16], 7;\n"
		"call.uni (q), f, (a); ld.param.b32 %r4, [q]; ld.param.b32 %r5, "
		"[q+16]; }\n"
		"st.global.v2.u32 [%rd1], {%r4, %r5}; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 512);

	rig->stack_size = 8192;
	rig_launch(rig, "k", 1, 20, &out, sizeof(out));
	for (uint32_t i = 0; i < 20; i++) {
		check_eq(out[2 * i], 100 + i);
		check_eq(out[2 * i + 1], 7 + i * (i + 1) / 2);
	}
}

/* Each activation has its own array, whose address the callee gets; all are summed. */
TEST(each_activation_has_its_own_local_memory)
{
	static const char ptx[] = HEADER
		".func (.param .b32 r) f(.param .b32 n, .param .b64 up) {\n"
		".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p;\n"
		".local .align 8 .b8 box[24]; ld.param.u32 %r1, [n];\n"
		"ld.param.u64 %rd1, [up]; mov.u64 %rd2, box;\n"
		"cvta.local.u64 %rd3, %rd2; st.local.u32 [%rd2+8], %r1;\n"
		"st.local.u32 [box+12], 5; ld.u32 %r2, [%rd1+8];\n"
		"setp.eq.u32 %p, %r1, 0; mov.u32 %r4, 0; @%p bra OUT;\n"
		"sub.u32 %r3, %r1, 1;\n"
		"{ .param .b32 a; .param .b64 b; .param .b32 q; st.param.b32 [a], %r3;\n"
		"st.param.b64 [b], %rd3; call.uni (q), f, (a, b);\n"
		"ld.param.b32 %r4, [q]; }\n"
		"OUT: ld.local.u32 %r5, [box+8]; sub.u32 %r5, %r5, %r1;\n"
		"ld.u32 %r6, [%rd3+12]; add.u32 %r5, %r5, %r6;\n"
		"add.u32 %r4, %r4, %r2; mad.lo.u32 %r4, %r5, 1000, %r4;\n"
		"st.param.b32 [r], %r4; ret; }\n"
		".visible .entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
		".local .align 8 .b8 box[24]; ld.param.u64 %rd1, [p];\n"
		"mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;\n"
		"add.u64 %rd1, %rd1, %rd2; mov.u64 %rd3, box;\n"
		"cvta.local.u64 %rd4, %rd3;\n"
		"st.local.u32 [box+8], 50;\n"
		"{ .param .b32 a; .param .b64 b; .param .b32 q; st.param.b32 [a], %r1;\n"
		"st.param.b64 [b], %rd4; call.uni (q), f, (a, b);\n"
		"ld.param.b32 %r4, [q]; } st.global.u32 [%rd1], %r4; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 512);

	rig->stack_size = 8192;
	rig_launch(rig, "k", 1, 20, &out, sizeof(out));
	for (uint32_t i = 0; i < 20; i++)
		check_eq(out[i], 5000 * (i + 1) + 50 + i * (i + 1) / 2);
}

/* Lanes at the same barrier in different activations: all of them have to come. */
TEST(a_barrier_holds_lanes_of_different_depths)
{
	static const char ptx[] = HEADER
		".shared .align 4 .b8 sum[4];\n"
		".func (.param .b32 r) f(.param .b32 n) { .reg .b32 %r<9>; .reg .pred "
		"%p;\n"
		"ld.param.u32 %r1, [n]; setp.ne.u32 %p, %r1, 0; @%p bra DEEPER;\n"
		"atom.shared.add.u32 %r2, [sum], 1; bar.warp.sync 0xffffffff;\n"
		"ld.shared.u32 %r3, [sum]; st.param.b32 [r], %r3; ret;\n"
		"DEEPER: sub.u32 %r2, %r1, 1;\n"
		"{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r2;\n"
		"call (q), f, (a); ld.param.b32 %r4, [q]; }\n"
		"st.param.b32 [r], %r4; ret; }\n" ENTRY_OF("f");
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 512);

	rig->stack_size = 8192;
	rig_launch(rig, "k", 1, 32, &out, sizeof(out));
	for (uint32_t i = 0; i < 32; i++)
		check_eq(out[2 * i], 32);
}

#define ENDLESS                                                                          \
	".func (.param .b32 r) f(.param .b32 n) { .reg .b32 %r<9>; .reg .b64 %rd<3>;\n"  \
	".local .align 8 .b8 box[64]; ld.param.u32 %r1, [n]; add.u32 %r2, %r1, 1;\n"     \
	"st.local.u32 [box+60], %r1;\n"                                                  \
	"{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r2;\n"                       \
	"call (q), f, (a); ld.param.b32 %r4, [q]; }\n"                                   \
	"add.u32 %r4, %r4, %r1; st.param.b32 [r], %r4; ret; }\n"

TEST(a_stack_that_overflows_is_a_fault)
{
	static const char ptx[] = HEADER ENDLESS ENTRY_OF("f");
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 4096);
	static const uint32_t sizes[] = { 0, 16, 1024, 65536, 1u << 30 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		rig->stack_size = sizes[i];
		check_eq(rig_run(rig, "k", 1, 64, &out, sizeof(out)), 714);
		check(strstr(rig->fault.text, "stack overflow"));
		check_eq(rig->fault.line, 8);
	}
	for (size_t i = 0; i < 128; i++)
		check_eq(out[i], 0);
}

/* Depth 10 wants more than the least stack and less than the larger one. */
TEST(the_stack_is_as_large_as_was_asked_for)
{
	static const char ptx[] = HEADER FIBONACCI ENTRY_OF("fib");
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 4096);

	rig->stack_size = 64;
	check_eq(rig_run(rig, "k", 1, 16, &out, sizeof(out)), 714);
	rig->stack_size = 1024;
	rig_launch(rig, "k", 1, 16, &out, sizeof(out));
	check_eq(out[30], 610);
	rig->stack_size = 64;
	check_eq(rig_run(rig, "k", 1, 16, &out, sizeof(out)), 714);
}

/* 2^40 calls without a single loop. */
TEST(recursion_without_loops_ends_at_the_deadline)
{
	static const char ptx[] = HEADER FIBONACCI
		".visible .entry k(.param .u64 p) { .reg .b32 %r<9>;\n"
		"{ .param .b32 a; .param .b32 q; st.param.b32 [a], 90;\n"
		"call.uni (q), fib, (a); ld.param.b32 %r4, [q]; } ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 4096);
	struct timespec now;

	rig->stack_size = 65536;
	clock_gettime(CLOCK_MONOTONIC, &now);
	rig->deadline_ns =
		(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + 1000000u;
	check_eq(rig_run(rig, "k", 1, 32, &out, sizeof(out)), 702);
}

/*
 * The pointer comes from the caller: any number, a function with other parameters, an
 * entry function. Whatever a kernel writes over its frames, it cannot change the control
 * flow.
 */
TEST(a_call_leads_to_a_function_of_its_type_or_nowhere)
{
	static const char ptx[] = HEADER
		".func (.param .b32 r) good(.param .b32 n) { .reg .b32 %r<9>;\n"
		"ld.param.u32 %r1, [n]; add.u32 %r1, %r1, 3; st.param.b32 [r], %r1;\n"
		"ret; }\n"
		".func (.param .b32 r) other(.param .b64 n) { .reg .b32 %r<9>;\n"
		"st.param.b32 [r], 9; ret; }\n"
		".global .align 8 .u64 table[4] = {good, other};\n"
		".visible .entry k(.param .u64 p, .param .u64 at) { .reg .b32 %r<9>;\n"
		".reg .b64 %rd<9>; .reg .pred %p; ld.param.u64 %rd1, [p];\n"
		"ld.param.u64 %rd3, [at]; mov.u64 %rd2, table;\n"
		"setp.gt.u64 %p, %rd3, 3; @%p bra CALL;\n"
		"shl.b64 %rd3, %rd3, 3; add.u64 %rd2, %rd2, %rd3;\n"
		"ld.global.u64 %rd3, [%rd2];\n"
		"CALL: { .param .b32 a; .param .b32 q; st.param.b32 [a], 4;\n"
		"proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
		"call (q), %rd3, (a), proto; ld.param.b32 %r4, [q]; }\n"
		"st.global.u32 [%rd1], %r4; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	struct {
		uint32_t *out;
		uint64_t at;
	} params = { rig_alloc(rig, 256), 0 };
	static const uint64_t bad[] = { 1, 2, 3, 0x3f000002, 0x3f000003, 0x3effffff, 1000,
		UINT64_MAX, UINT64_C(0x100000000) + 0x3f000000 };

	rig_launch(rig, "k", 1, 1, &params, sizeof(params));
	check_eq(*params.out, 7);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		params.at = bad[i];
		check_eq(rig_run(rig, "k", 1, 1, &params, sizeof(params)), 718);
	}
}

TEST(writes_of_a_kernel_to_its_frames_change_only_its_data)
{
	static const char ptx[] =
		HEADER ".func (.param .b32 r) f(.param .b32 n) { .reg .b32 %r<9>;\n"
		       ".reg .b64 %rd<9>; .reg .pred %p; ld.param.u32 %r1, [n];\n"
		       "setp.eq.u32 %p, %r1, 0; @%p bra WIPE; sub.u32 %r2, %r1, 1;\n"
		       "{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r2;\n"
		       "call (q), f, (a); ld.param.b32 %r4, [q]; }\n"
		       "add.u32 %r4, %r4, %r1; st.param.b32 [r], %r4; ret;\n"
		       "WIPE: mov.u64 %rd1, 0; mov.u32 %r3, 0;\n"
		       "L: st.local.u32 [%rd1], 0xffffffff; add.u64 %rd1, %rd1, 4;\n"
		       "add.u32 %r3, %r3, 1; setp.lt.u32 %p, %r3, 1000; @%p bra L;\n"
		       "st.param.b32 [r], 1; ret; }\n" ENTRY_OF("f");
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 4096);

	rig->stack_size = 1024;
	rig_launch(rig, "k", 1, 8, &out, sizeof(out));
	for (uint32_t i = 0; i < 8; i++)
		check_eq(out[2 * i], 1 + i * (i + 1) / 2);
}

/* The host determines the address of an argument: no number of the kernel may move it. */
TEST(an_argument_is_a_variable_and_nothing_beside_it)
{
	static const char *const arguments[2] = { "a+1073741824", "a-64" };
	struct softgpu_message message;
	char ptx[2048];

	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t is_result = 0; is_result < 2; is_result++) {
			const char *argument = arguments[i];

			snprintf(ptx, sizeof(ptx),
				"%s.visible .entry k(.param .u64 p) {\n"
				"{ .param .b32 a; .param .b32 q;\n"
				"call.uni (%s), fib, (%s);\n"
				"call.uni (%s), fib, (%s); } ret; }\n",
				HEADER FIBONACCI, "q", "a", is_result ? argument : "q",
				is_result ? "a" : argument);
			check_eq(rig_lookup(ptx, "k", &message),
				SOFTGPU_ERROR_NOT_SUPPORTED);
		}
}

/* The copied bytes must be within the named variable. */
TEST(an_argument_has_the_size_that_the_function_declares)
{
	static const char ptx[] = HEADER
		".func (.param .b8 r[512]) f(.param .b8 n[512]) { .reg .b32 %r<9>;\n"
		"{ .param .b8 a[512]; .param .b8 q[512];\n"
		"call.uni (q), f, (a); } ret; }\n"
		".visible .entry k(.param .u64 p) {\n"
		"{ .param .b32 a; .param .b32 q; call.uni (q), f, (a); } ret; }\n";
	struct softgpu_message message;

	check_eq(rig_lookup(ptx, "k", &message), SOFTGPU_ERROR_NOT_SUPPORTED);
}

/*
 * Functions that cannot be run, together with some that can. @_name is called through a
 * pointer by threads above 31.
 */
#define OTHERWISE(_name)                                                                 \
	HEADER ".extern .func (.param .b32 r) nowhere(.param .b32 n);\n"                 \
	       ".func (.param .b32 r) plain(.param .b32 n) { .reg .b32 %r;\n"            \
	       "ld.param.u32 %r, [n]; add.u32 %r, %r, 5; st.param.b32 [r], %r; ret; }\n" \
	       ".func (.param .b32 r) broken(.param .b32 n) { .reg .b32 %r; .reg .pred " \
	       "%p;\n"                                                                   \
	       "ld.param.u32 %r, [n]; setp.eq.u32 %p, %r, 0; @%p bra OUT;\n"             \
	       "{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r;\n"                 \
	       "call.uni (q), nowhere, (a); ld.param.b32 %r, [q]; }\n"                   \
	       "OUT: st.param.b32 [r], %r; ret; }\n"                                     \
	       ".visible .entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd<9>;\n" \
	       ".reg .pred %p; ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;\n"           \
	       "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n"                  \
	       "mov.u64 %rd3, plain; mov.u64 %rd4, " _name ";\n"                         \
	       "setp.gt.u32 %p, %r1, 31; selp.b64 %rd3, %rd4, %rd3, %p;\n"               \
	       "{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r1;\n"                \
	       "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"                  \
	       "call (q), %rd3, (a), P; ld.param.b32 %r4, [q]; }\n"                      \
	       "st.global.u32 [%rd1], %r4; ret; }\n"

TEST(unreachable_functions_need_not_run)
{
	CLEAN_RIG rig = rig_new(OTHERWISE("plain"));
	uint32_t *out = rig_alloc(rig, 64 * sizeof(*out));

	rig_launch(rig, "k", 1, 64, &out, sizeof(out));
	for (uint32_t i = 0; i < 64; i++)
		check_eq(out[i], i + 5);
}

TEST(a_call_of_an_unsupported_function_ends_the_kernel_with_a_reason)
{
	CLEAN_RIG rig = rig_new(OTHERWISE("broken"));
	uint32_t *out = rig_alloc(rig, 64 * sizeof(*out));

	rig_launch(rig, "k", 1, 32, &out, sizeof(out));
	for (uint32_t i = 0; i < 32; i++)
		check_eq(out[i], i + 5);
	check_eq(rig_run(rig, "k", 1, 64, &out, sizeof(out)),
		SOFTGPU_ERROR_ILLEGAL_INSTRUCTION);
	check(strstr(rig->fault.text, "call of broken, which cannot be run"));
	check(strstr(rig->fault.text, "calls nowhere, which is not defined"));
}

TEST(an_address_in_a_variable_may_be_called_by_another_kernel)
{
	static const char ptx[] = HEADER
		".func (.param .b32 r) plain(.param .b32 n) { .reg .b32 %r;\n"
		"ld.param.u32 %r, [n]; add.u32 %r, %r, 5; st.param.b32 [r], %r; ret; }\n"
		".func (.param .b32 r) twice(.param .b32 n) { .reg .b32 %r;\n"
		"ld.param.u32 %r, [n]; shl.b32 %r, %r, 1; st.param.b32 [r], %r; ret; }\n"
		".global .align 8 .u64 table[2] = { plain, 0 };\n"
		".visible .entry fill() { .reg .b64 %d; mov.u64 %d, twice;\n"
		"st.global.u64 [table+8], %d; ret; }\n"
		".visible .entry k(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
		"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1;\n"
		"mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n"
		"mul.wide.u32 %rd2, %r2, 8; mov.u64 %rd3, table;\n"
		"add.u64 %rd3, %rd3, %rd2; ld.global.u64 %rd3, [%rd3];\n"
		"{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r1;\n"
		"P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
		"call (q), %rd3, (a), P; ld.param.b32 %r4, [q]; }\n"
		"st.global.u32 [%rd1], %r4; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 64 * sizeof(*out));

	rig_launch(rig, "fill", 1, 1, NULL, 0);
	rig_launch(rig, "k", 1, 64, &out, sizeof(out));
	for (uint32_t i = 0; i < 64; i++)
		check_eq(out[i], i & 1 ? 2 * i : i + 5);
}

TEST(functions_of_a_driver_are_refused_by_name)
{
	static const char ptx[] = HEADER
		".extern .func (.param .b32 r) __cuda_syscall_cnpv2GetLastError();\n"
		".visible .entry k() { { .param .b32 q;\n"
		"call.uni (q), __cuda_syscall_cnpv2GetLastError, (); } ret; }\n";
	struct softgpu_message message = {};

	check_eq(rig_lookup(ptx, "k", &message), SOFTGPU_ERROR_NOT_SUPPORTED);
	check(strstr(message.text, "only a GPU's driver has"));
}
