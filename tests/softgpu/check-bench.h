/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Kernels that are watched, and what is found
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec-harness.h"
#include "exec/bits.h"
#include "test.h"

/* The body begins in line 8 of the text. */
#define ENTRY(_body)                                                                     \
	".version 8.8\n.target sm_120\n.address_size 64\n"                               \
	".visible .entry k(.param .u64 p) {\n"                                           \
	".reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<9>;\n"      \
	".shared .align 16 .b8 s[2048];\n"                                               \
	"ld.param.u64 %rd0, [p]; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2;\n" _body      \
	"ret; }\n"

/* r2: the place of the thread's word, r3: that of the same lane in the other warp. */
#define PLACES                                                                           \
	"mov.u32 %r2, s; add.u32 %r2, %r2, %r1; xor.b32 %r3, %r1, 128;"                  \
	"mov.u32 %r4, s; add.u32 %r3, %r3, %r4;\n"

#define FINDINGS_MAX 8

struct bench {
	struct rig *rig;
	struct softgpu_checks checks;
	struct softgpu_fault findings[FINDINGS_MAX];
	unsigned int n;
	uint8_t *memory; /* the kernel's parameter: 4096 bytes */
	int result;
};

static inline void note(void *data, const struct softgpu_fault *finding)
{
	struct bench *bench = data;

	check(bench->n < FINDINGS_MAX);
	bench->findings[bench->n++] = *finding;
}

static inline void bench_deinit(struct bench *bench)
{
	free(bench->rig->space.windows[0].unwritten);
	rig_free(bench->rig);
}

#define CLEAN_BENCH __attribute__((__cleanup__(bench_deinit))) struct bench

/* Its memory has not been written, which counts if the kinds say so. */
static inline void bench_init(struct bench *bench, const char *ptx, unsigned int kinds)
{
	struct softgpu_window *window;

	*bench = (struct bench){ .rig = rig_new(ptx) };
	window = &bench->rig->space.windows[0];
	bench->checks = (struct softgpu_checks){ kinds, note, bench };
	bench->rig->checks = &bench->checks;
	window->unwritten = calloc(window->size / 8, 1);
	check(window->unwritten);
	check_eq(softgpu_program_watch(bench->rig->program), 0);
	bench->memory = rig_alloc(bench->rig, 4096);
	softgpu_bits_set(
		window->unwritten, (uintptr_t)bench->memory - window->base, 4096, true);
}

static inline void bench_run(struct bench *bench, uint32_t grid, uint32_t block)
{
	bench->result = rig_run(
		bench->rig, "k", grid, block, &bench->memory, sizeof(bench->memory));
}

#define RACES SOFTGPU_CHECK_RACES
#define UNWRITTEN SOFTGPU_CHECK_UNWRITTEN
