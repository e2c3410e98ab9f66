/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Options of the compiler in the driver
 *
 * A program gives pairs of option and value; a value is a number, or says where the
 * compiler shall write its log. Numbers travel; logs and what the driver writes in place
 * of a number come back with the reply. An option that names symbols or functions of the
 * program is refused.
 */

#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/load.h"

/* A buffer of the program, and where it reads how much is in it. */
struct shim_jit_log {
	char *buffer;
	uint32_t size; /* as it was given */
	void **sizep;
};

/* Where the program wants what comes back; NULL where it does not. */
struct shim_jit {
	struct shim_jit_log info;
	struct shim_jit_log error;
	void **wall_timep;
	void **threads_per_blockp;
};

/* Takes options over: numbers and sizes of logs into the load, the rest for later. */
CUresult shim_jit_prepare(struct shim_jit *jit, const CUjit_option *options,
	void **values, unsigned int n, struct vgpu_load *load);

/*
 * Writes logs and numbers to the program's buffers.
 *
 * @logs:	the logs of the load: the error log follows the information log
 */
void shim_jit_finish(const struct shim_jit *jit, const struct vgpu_load *load,
	const struct vgpu_load_result *result, const char *logs);
