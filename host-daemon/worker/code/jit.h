/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Options of the compiler, for the driver
 *
 * Numeric options are taken from a list of those that are allowed; buffers for the
 * compiler's logs are the worker's own, bounded and charged. A driver writes results into
 * the array of values, which therefore lives as long as the load or link.
 */

#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/load.h"

struct call;
struct session;

struct jit {
	unsigned int n_options;
	CUjit_option options[VGPU_LOAD_OPTIONS_MAX + 4];
	void *values[VGPU_LOAD_OPTIONS_MAX + 4];
	char *logs; /* both, the information log first; charged */
	uint32_t info_size;
	uint32_t error_size;
};

/* Copies the options. Call jit_deinit() in any case. Return: the result for the guest. */
CUresult jit_init(struct jit *jit, struct session *session, const struct vgpu_load *load);

/* Makes the driver write its error log to memory of the caller as NUL-terminated text, if
 * the guest wants no log. */
void jit_add_error_log(struct jit *jit, char *log, uint32_t size);
void jit_deinit(struct jit *jit, struct session *session);

/* Writes the logs to the load's buffers in the arena, and returns the numbers. */
void jit_report(struct call *call, const struct jit *jit, const struct vgpu_load *load,
	struct vgpu_load_result *result);
