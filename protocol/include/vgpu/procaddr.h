/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The table of cuGetProcAddress
 *
 * One entry for each ABI version of each name, generated from the description and sorted
 * by name, then by version. The answer for (name, version) is the last entry of that name
 * whose version is not above; with the per-thread flag its per-thread twin, if it has one
 * that is not younger than `version`.
 */

#include <stddef.h>

struct vgpu_procaddr {
	const char *name;
	int since; /* as CUDA_VERSION counts */
	void *plain;
	int pt_since; /* 0: no twin for per-thread default streams */
	void *pt;
};

extern const struct vgpu_procaddr vgpu_procaddr[];
extern const size_t vgpu_n_procaddr;
