/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Kernels of a few lines: what is around them, and what their threads leave
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec-harness.h"
#include "test.h"

#define CLEAN_RIG __attribute__((__cleanup__(rig_freep))) struct rig *
#define HEADER ".version 9.0\n.target sm_121\n.address_size 64\n"
#define REGISTERS                                                                        \
	".reg .b8 %b<9>; .reg .b16 %h<17>; .reg .b32 %r<20>; .reg .b64 %d<12>;\n"        \
	".reg .b128 %q<6>; .reg .f32 %f<9>; .reg .pred %p<4>;\n"

/*
 * A kernel of that body following @outside: %d0 is @memory (device memory), %r0 the
 * thread's number, %d1 a place of 32 bytes for each thread.
 */
static inline struct rig *rig_of(const char *outside, const char *body)
{
	static char text[16384];

	snprintf(text, sizeof(text),
		HEADER "%s\n.visible .entry k(.param .u64 p, .param .u64 o) {\n%s"
		       "ld.param.u64 %%d0, [p]; ld.param.u64 %%d1, [o];\n"
		       "mov.u32 %%r0, %%tid.x; mul.wide.u32 %%d2, %%r0, 32;\n"
		       "add.u64 %%d1, %%d1, %%d2;\n%s\nret; }\n",
		outside, REGISTERS, body);
	return rig_new(text);
}

struct buffers {
	void *memory;
	uint32_t (*out)[8]; /* for each thread */
};

static inline struct buffers buffers_of(struct rig *rig, uint32_t threads)
{
	return (struct buffers){ rig_alloc(rig, 4096),
		rig_alloc(rig, (uint64_t)threads * 32) };
}

/* Returns: the code of the fault, 0 for none. */
static inline int run(struct rig *rig, const struct buffers *b, uint32_t threads)
{
	return rig_run(rig, "k", 1, threads, b, sizeof(*b));
}

static inline void run_well(struct rig *rig, const struct buffers *b, uint32_t threads)
{
	if (run(rig, b, threads))
		test_fail(__FILE__, __LINE__, "%s", rig->fault.text);
}

enum which { ADD, MIN, MAX };

/* By the words of PTX: -0 is below +0, and NaN is taken only where both are. */
static inline float combine(enum which which, float a, float b)
{
	if (which == ADD)
		return a + b;
	if (a != a || b != b)
		return a == a ? a : b;
	if (a == b)
		return (which == MIN) == !!signbit(a) ? a : b;
	return (which == MIN) == (a < b) ? a : b;
}
