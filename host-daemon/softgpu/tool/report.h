/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Report: what a PTX text needs, and whether softgpu runs it, kernel by kernel
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ptx/module.h"

/* Refusals of one kernel; beyond these there are more of the same kind. */
#define REPORT_REFUSALS_MAX 64u

struct report_refusal {
	uint32_t line; /* of the text; 0: no particular one */
	char *text;
};

struct report_kernel {
	const char *name;
	int result; /* of its look-up: a CUDA error, 0: it runs */
	struct report_refusal *refusals;
	uint32_t n_refusals;
	/* Where it runs. Registers are an estimate: those of 32 bits that are live at
	 * once. */
	uint32_t n_registers;
	uint32_t shared_size;
	uint32_t local_size;
	uint32_t params_size;
	uint32_t max_threads;
	bool uses_barriers;
};

struct report {
	int result;		/* of loading: a CUDA error, or 0 */
	struct ptx_error error; /* if that is not 0 */
	uint32_t version;	/* PTX ISA as major * 10 + minor */
	uint32_t target;	/* 75 for sm_75 */
	char target_kind;	/* 'a', 'f' or 0 */
	uint64_t global_size;	/* of its variables */
	uint64_t const_size;
	struct report_kernel *kernels;
	uint32_t n_kernels;
	uint32_t n_running;
	struct ptx_module *module; /* owns the names */
};

/**
 * report_new() - examine a text
 * @reportp:	the report; report_free() releases it
 * @text:	need not end with a NUL
 * @cc:		compute capability of the device, 121 for 12.1
 *
 * Each kernel is decoded as softgpu does at its first look-up. An instruction that is
 * refused is then taken out, so that the next one is found.
 *
 * Return: 0, also for a text that is refused, or -ENOMEM.
 */
int report_new(struct report **reportp, const char *text, size_t size, unsigned int cc);
struct report *report_free(struct report *report);

static inline void report_freep(struct report **reportp)
{
	report_free(*reportp);
}
