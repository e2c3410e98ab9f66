/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subroutines in common: many kernels whose calls through pointers lead to many functions
 *
 * Each kernel has its own constants, shared memory, values that live across the call and
 * branch table, and so have the functions. The decoded functions are counted, not timed.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec-harness.h"
#include "test.h"

#define HEADER ".version 8.8\n.target sm_120\n.address_size 64\n"
#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *

enum { N = 40, N_THREADS = 64 };

struct text {
	char *bytes;
	size_t n, size;
};

__attribute__((__format__(__printf__, 2, 3))) static void add(
	struct text *t, const char *format, ...)
{
	va_list ap;

	if (t->size - t->n < 4096) {
		t->size = t->size ? t->size * 2 : 1 << 16;
		t->bytes = realloc(t->bytes, t->size);
		check(t->bytes != NULL);
	}
	va_start(ap, format);
	t->n += (size_t)vsnprintf(t->bytes + t->n, t->size - t->n, format, ap);
	va_end(ap);
}

/* n * 3 + i * 1000003, by way of shared memory, and for odd n one more. */
static void add_function(struct text *t, uint32_t i)
{
	add(t,
		".func (.param .b32 r) f%u(.param .b32 n) { .reg .b32 %%r<9>;\n"
		".reg .b64 %%d<4>; .shared .align 4 .b32 box[%d];\n"
		"ld.param.u32 %%r1, [n]; mov.u32 %%r2, %%tid.x;\n"
		"mul.wide.u32 %%d1, %%r2, 4; mov.u64 %%d2, box;\n"
		"add.u64 %%d1, %%d1, %%d2; mul.lo.u32 %%r3, %%r1, 3;\n"
		"add.u32 %%r3, %%r3, %u; st.shared.u32 [%%d1], %%r3;\n"
		"and.b32 %%r4, %%r1, 1; ways: .branchtargets EVEN, ODD;\n"
		"brx.idx %%r4, ways;\n"
		"EVEN: ld.shared.u32 %%r5, [%%d1]; st.param.b32 [r], %%r5; ret;\n"
		"ODD: ld.shared.u32 %%r5, [%%d1]; add.u32 %%r5, %%r5, 1;\n"
		"st.param.b32 [r], %%r5; ret; }\n",
		i, N_THREADS, i * 1000003);
}

static uint32_t function_of(uint32_t i, uint32_t n)
{
	return n * 3 + i * 1000003 + (n & 1);
}

/* Calls another function in each thread; its own shared memory has to stay. */
static void add_kernel(struct text *t, const char *table, uint32_t k)
{
	add(t,
		".visible .entry %s%u(.param .u64 p) { .reg .b32 %%r<12>;\n"
		".reg .b64 %%d<12>; .shared .align 4 .b32 mine[%d];\n"
		"ld.param.u64 %%d1, [p]; mov.u32 %%r1, %%tid.x;\n"
		"mul.wide.u32 %%d2, %%r1, 4; add.u64 %%d1, %%d1, %%d2;\n"
		"mov.u64 %%d3, mine; add.u64 %%d3, %%d3, %%d2;\n"
		"mov.u64 %%d7, rest; add.u64 %%d7, %%d7, %%d2;\n"
		"mad.lo.u32 %%r2, %%r1, 7, %u; st.shared.u32 [%%d3], %%r2;\n"
		"st.shared.u32 [%%d7], %%r1;\n"
		"add.u32 %%r3, %%r1, %u; rem.u32 %%r3, %%r3, %d;\n"
		"mul.wide.u32 %%d4, %%r3, 8; mov.u64 %%d5, %s;\n"
		"add.u64 %%d4, %%d4, %%d5; ld.global.u64 %%d6, [%%d4];\n"
		"{ .param .b32 a; .param .b32 q; st.param.b32 [a], %%r2;\n"
		"proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
		"call (q), %%d6, (a), proto; ld.param.b32 %%r4, [q]; }\n"
		"ld.shared.u32 %%r5, [%%d3]; ld.shared.u32 %%r6, [%%d7];\n"
		"sub.u32 %%r5, %%r5, %%r2; sub.u32 %%r6, %%r6, %%r1;\n"
		"add.u32 %%r4, %%r4, %%r5; add.u32 %%r4, %%r4, %%r6;\n"
		"and.b32 %%r7, %%r1, 1; ways: .branchtargets LOW, HIGH;\n"
		"brx.idx %%r7, ways;\n"
		"HIGH: add.u32 %%r4, %%r4, %u; LOW: st.global.u32 [%%d1], %%r4;\n"
		"ret; }\n",
		table, k, N_THREADS, k * 65537 + 5, k, N, table, k * 11 + 1);
}

static void check_kernel(struct rig *rig, const char *table, uint32_t k)
{
	uint32_t *out = rig_alloc(rig, N_THREADS * sizeof(*out));
	char name[32];

	snprintf(name, sizeof(name), "%s%u", table, k);
	rig->dynamic_shared_size = N_THREADS * sizeof(uint32_t);
	rig_launch(rig, name, 1, N_THREADS, &out, sizeof(out));
	for (uint32_t i = 0; i < N_THREADS; i++) {
		uint32_t n = i * 7 + k * 65537 + 5;

		check_eq(out[i], function_of((i + k) % N, n) + (i & 1 ? k * 11 + 1 : 0));
	}
}

static struct text module_text(void)
{
	struct text t = {};

	add(&t, HEADER ".extern .shared .align 4 .b32 rest[];\n");
	for (uint32_t i = 0; i < N; i++)
		add_function(&t, i);
	add(&t, ".global .align 8 .u64 t[%d] = {f0", N);
	for (uint32_t i = 1; i < N; i++)
		add(&t, ", f%u", i);
	add(&t, "};\n");
	return t;
}

TEST(kernels_that_call_the_same_functions_share_what_was_decoded)
{
	struct text t = module_text();

	for (uint32_t k = 0; k < N; k++)
		add_kernel(&t, "t", k);
	{
		CLEAN_RIG rig = rig_new(t.bytes);

		for (uint32_t k = 0; k < N; k++) {
			check_kernel(rig, "t", k);
			check_eq(softgpu_program_n_subroutines(rig->program), N);
		}
		/* Later additions have not changed the first ones. */
		for (uint32_t k = 0; k < N; k += 7)
			check_kernel(rig, "t", k);
	}
	free(t.bytes);
}

/* A kernel of another type of pointer has its own set, and its own recursion. */
TEST(kernels_that_call_others_share_other_subroutines)
{
	static const char others[] =
		".func (.param .b64 r) g(.param .b64 n) { .reg .b64 %d<4>;\n"
		"ld.param.u64 %d1, [n]; add.u64 %d1, %d1, 77;\n"
		"st.param.b64 [r], %d1; ret; }\n"
		".global .align 8 .u64 u[1] = {g};\n"
		".func (.param .b32 r) sum(.param .b32 n) { .reg .b32 %r<9>;\n"
		".reg .pred %p; ld.param.u32 %r1, [n]; mov.u32 %r2, 0;\n"
		"setp.eq.u32 %p, %r1, 0; @%p bra OUT; sub.u32 %r3, %r1, 1;\n"
		"{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r3;\n"
		"call.uni (q), sum, (a); ld.param.b32 %r2, [q]; }\n"
		"OUT: add.u32 %r2, %r2, %r1; st.param.b32 [r], %r2; ret; }\n"
		".visible .entry o(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %d<9>;\n"
		"ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x;\n"
		"mul.wide.u32 %d2, %r1, 8; add.u64 %d1, %d1, %d2;\n"
		"mov.u64 %d3, u; ld.global.u64 %d4, [%d3]; cvt.u64.u32 %d5, %r1;\n"
		"{ .param .b64 a; .param .b64 q; st.param.b64 [a], %d5;\n"
		"proto: .callprototype (.param .b64 _) _ (.param .b64 _);\n"
		"call (q), %d4, (a), proto; ld.param.b64 %d6, [q]; }\n"
		"{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r1;\n"
		"call.uni (q), sum, (a); ld.param.b32 %r2, [q]; }\n"
		"cvt.u64.u32 %d7, %r2; mad.lo.u64 %d6, %d7, 1000, %d6;\n"
		"st.global.u64 [%d1], %d6; ret; }\n";
	struct text t = module_text();

	add_kernel(&t, "t", 3);
	add(&t, "%s", others);
	{
		CLEAN_RIG rig = rig_new(t.bytes);
		uint64_t *out = rig_alloc(rig, 32 * sizeof(*out));

		rig->stack_size = 8192;
		rig_launch(rig, "o", 1, 32, &out, sizeof(out));
		for (uint64_t i = 0; i < 32; i++)
			check_eq(out[i], i + 77 + i * (i + 1) / 2 * 1000);
		/* g, and sum: read, then appended. */
		check_eq(softgpu_program_n_subroutines(rig->program), 3);
		check_kernel(rig, "t", 3);
		check_eq(softgpu_program_n_subroutines(rig->program), 3 + N);
	}
	free(t.bytes);
}
