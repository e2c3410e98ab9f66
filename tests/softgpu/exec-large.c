/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large functions: thousands of blocks and registers
 *
 * The text is a chain of links, each with one or two blocks that compute a register from
 * those of earlier links; the path depends on the thread.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec-harness.h"
#include "test.h"

#define HEADER ".version 8.8\n.target sm_120\n.address_size 64\n"
#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *

/* From how far back a link takes its second operand. */
#define REACH 40

struct text {
	char *bytes;
	size_t n, size;
};

__attribute__((__format__(__printf__, 2, 3))) static void add(
	struct text *t, const char *format, ...)
{
	va_list ap;

	if (t->size - t->n < 512) {
		t->size = t->size ? t->size * 2 : 1 << 16;
		t->bytes = realloc(t->bytes, t->size);
		check(t->bytes != NULL);
	}
	va_start(ap, format);
	t->n += (size_t)vsnprintf(t->bytes + t->n, t->size - t->n, format, ap);
	va_end(ap);
}

static uint32_t back(uint32_t link)
{
	return link < REACH ? 0 : link - REACH;
}

/* One register for each link, and a way around half of it for every other thread. */
static struct text chain(uint32_t n_links)
{
	struct text t = {};

	add(&t,
		HEADER
		".visible .entry k(.param .u64 p) {\n"
		".reg .b32 %%r<%u>; .reg .b32 %%t<4>; .reg .b64 %%d<4>; .reg .pred %%q;\n"
		"ld.param.u64 %%d1, [p]; mov.u32 %%t1, %%tid.x;\n"
		"mul.wide.u32 %%d2, %%t1, 4; add.u64 %%d1, %%d1, %%d2;\n"
		"mov.u32 %%r0, %%t1;\n",
		n_links + 1);
	for (uint32_t i = 0; i < n_links; i++)
		add(&t,
			"shr.u32 %%t2, %%t1, %u; and.b32 %%t2, %%t2, 1;\n"
			"setp.eq.u32 %%q, %%t2, 0;\n"
			"mad.lo.u32 %%r%u, %%r%u, 3, %%r%u; @%%q bra L%u;\n"
			"xor.b32 %%r%u, %%r%u, %%t1;\nL%u:\n",
			i % 5, i + 1, i, back(i), i, i + 1, i + 1, i);
	add(&t, "st.global.u32 [%%d1], %%r%u; ret; }\n", n_links);
	return t;
}

static uint32_t follow(uint32_t n_links, uint32_t tid)
{
	uint32_t *r = calloc(n_links + 1, sizeof(*r)), last;

	check(r != NULL);
	r[0] = tid;
	for (uint32_t i = 0; i < n_links; i++) {
		r[i + 1] = r[i] * 3 + r[back(i)];
		if (tid >> i % 5 & 1)
			r[i + 1] ^= tid;
	}
	last = r[n_links];
	free(r);
	return last;
}

static void check_chain(uint32_t n_links)
{
	struct text t = chain(n_links);
	CLEAN_RIG rig = rig_new(t.bytes);
	uint32_t *out = rig_alloc(rig, 64 * sizeof(*out));

	rig_launch(rig, "k", 1, 64, &out, sizeof(out));
	for (uint32_t i = 0; i < 64; i++)
		check_eq(out[i], follow(n_links, i));
	/* Short-lived values share slots. */
	check(softgpu_kernel_info(rig_kernel(rig, "k"))->n_registers < 2 * REACH);
	free(t.bytes);
}

TEST(a_function_of_17000_blocks_and_20000_registers_runs)
{
	check_chain(20000);
}

TEST_SECONDS(a_function_of_100000_registers_runs, 300)
{
	check_chain(100000);
}

TEST(a_value_lives_around_loops_that_are_nested_and_entered_in_the_middle)
{
	static const char ptx[] =
		HEADER ".visible .entry k(.param .u64 p) {\n"
		       ".reg .b32 %r<12>; .reg .b64 %d<4>; .reg .pred %q;\n"
		       "ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x;\n"
		       "mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;\n"
		       "add.u32 %r2, %r1, 100; mov.u32 %r3, 0; mov.u32 %r4, 0;\n"
		       "mov.u32 %r6, 0; bra MIDDLE;\n"
		       "OUTER: mov.u32 %r5, 0;\n"
		       "INNER: add.u32 %r3, %r3, %r2; add.u32 %r5, %r5, 1;\n"
		       "setp.lt.u32 %q, %r5, 3; @%q bra INNER;\n"
		       "MIDDLE: add.u32 %r6, %r6, %r2; add.u32 %r4, %r4, 1;\n"
		       "add.u32 %r7, %r1, 2; setp.lt.u32 %q, %r4, %r7; @%q bra OUTER;\n"
		       "add.u32 %r3, %r3, %r6; st.global.u32 [%d1], %r3; ret; }\n";
	CLEAN_RIG rig = rig_new(ptx);
	uint32_t *out = rig_alloc(rig, 32 * sizeof(*out));

	rig_launch(rig, "k", 1, 32, &out, sizeof(out));
	for (uint32_t i = 0; i < 32; i++)
		check_eq(out[i], (i + 100) * (3 * (i + 1) + i + 2));
}

/* All are written first and read last. */
static struct text all_at_once(uint32_t n)
{
	struct text t = {};

	add(&t,
		HEADER ".visible .entry k(.param .u64 p) {\n"
		       ".reg .b32 %%r<%u>, %%t; .reg .b64 %%d; ld.param.u64 %%d, [p];\n"
		       "mov.u32 %%t, %%tid.x;\n",
		n);
	for (uint32_t i = 0; i < n; i++)
		add(&t, "ld.global.u32 %%r%u, [%%d+%u];\n", i, 4 * (i % 1000));
	for (uint32_t i = 1; i < n; i++)
		add(&t, "mad.lo.u32 %%r0, %%r0, 3, %%r%u;\n", i);
	add(&t, "mad.wide.u32 %%d, %%t, 4, %%d; add.u32 %%r0, %%r0, %%t;\n"
		"st.global.u32 [%%d+4096], %%r0; ret; }\n");
	return t;
}

TEST(as_many_registers_at_once_as_an_operand_can_name_are_there)
{
	static const uint32_t counts[] = { 10206, 65000 };

	for (size_t k = 0; k < 2; k++) {
		struct text t = all_at_once(counts[k]);
		CLEAN_RIG rig = rig_new(t.bytes);
		uint32_t *words = rig_alloc(rig, 8192), want = 0;
		uint32_t threads = softgpu_kernel_info(rig_kernel(rig, "k"))->max_threads;

		for (uint32_t i = 0; i < 1000; i++)
			words[i] = i * 2654435761u;
		for (uint32_t i = 0; i < counts[k]; i++)
			want = i ? want * 3 + words[i % 1000] : words[0];
		/* Blocks are smaller where their registers would take very much memory.
		 */
		check_eq(threads, k ? 256 : 1024);
		rig_launch(rig, "k", 1, 256, &words, sizeof(words));
		for (uint32_t i = 0; i < 256; i++)
			check_eq(words[1024 + i], want + i);
		free(t.bytes);
	}
}

TEST(a_block_too_large_for_its_registers_is_refused)
{
	struct text t = all_at_once(65000);
	CLEAN_RIG rig = rig_new(t.bytes);
	struct softgpu_launch launch = {
		.kernel = rig_kernel(rig, "k"),
		.grid = { 1, 1, 1 },
		.block = { 257, 1, 1 },
		.params = &rig,
		.params_size = 8,
	};

	check_eq(softgpu_launch_check(&launch), SOFTGPU_ERROR_LAUNCH_OUT_OF_RESOURCES);
	free(t.bytes);
}

TEST(registers_that_are_needed_at_once_and_are_too_many_are_refused_with_a_reason)
{
	struct softgpu_message message = {};
	struct text t = all_at_once(100000);

	check_eq(rig_lookup(t.bytes, "k", &message), SOFTGPU_ERROR_NOT_SUPPORTED);
	check(strstr(message.text, "registers at once") != NULL);
	free(t.bytes);
}
