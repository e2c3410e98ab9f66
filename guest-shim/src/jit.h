/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Options of the compiler in the driver
 *
 * A program gives pairs of option and value; a value is a number, or says where the
 * compiler shall write its log. Numbers travel, logs come back with the reply. Options
 * that only hint at how fast the code is to be, and that the host's side does not take,
 * are left out; one that names symbols or functions of the program is refused.
 */

#include <stdint.h>
#include <protobuf-c/protobuf-c.h>

#include "vgpu/cuda.h"

#define SHIM_JIT_OPTIONS_MAX 64u

struct shim_jit {
	/* As the program gave them; results are written to its values. */
	const CUjit_option *options;
	void **values;
	unsigned int n;

	/* As they travel. */
	int32_t sent_options[SHIM_JIT_OPTIONS_MAX];
	uint64_t sent_values[SHIM_JIT_OPTIONS_MAX];
	unsigned int n_sent;
};

CUresult shim_jit_prepare(
	struct shim_jit *jit, const CUjit_option *options, void **values, unsigned int n);

/* Writes logs and times to where the program wants them. */
void shim_jit_finish(const struct shim_jit *jit, float wall_time,
	const ProtobufCBinaryData *info, const ProtobufCBinaryData *error);
