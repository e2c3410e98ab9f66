/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Functions and kernels: where their parameters lie, and which launches are known to
 * be accepted
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/cuda.h"
#include "vgpu/launch.h"

#include "wire/table.h"

struct shim_context;
struct shim_launch;
struct shim_old_launch;

/* Launch shapes remembered for one function. */
#define SHIM_FUNCTION_SHAPES 16u

struct shim_function {
	CUfunction handle;
	char *name;			    /* once asked for */
	struct shim_old_launch *old_launch; /* of entry-launch-old.c, once used */

	/* Constant once made. */
	uint32_t n_params;
	uint32_t param_bytes;
	bool has_gaps;	   /* padding bytes between parameters */
	bool is_words;	   /* every parameter has 8 bytes, one right after the other */
	bool has_clusters; /* whose shape is the kernel's */
	uint32_t *offsets;
	uint32_t *sizes;

	/* Hashes of accepted shapes; atomic, any may be lost. */
	uint64_t shapes[SHIM_FUNCTION_SHAPES];
	uint32_t n_shapes;
};

/* By the index of their handles. */
extern struct shim_table shim_functions, shim_kernels;

/* Asks the host what the following did not find. Called by that alone. */
CUresult shim_function_load(CUfunction handle, struct shim_function **functionp);

/* Finds what is known of a function or kernel, asking the host the first time. */
static inline CUresult shim_function_get(
	CUfunction handle, struct shim_function **functionp)
{
	uint64_t number = (uint64_t)(uintptr_t)handle;
	const struct shim_table *table = vgpu_handle_kind(number) == VGPU_HANDLE_KERNEL
						 ? &shim_kernels
						 : &shim_functions;

	*functionp = shim_table_get(table, vgpu_handle_index(number));
	/* The kind is in the handle. */
	if (__builtin_expect(*functionp && (*functionp)->handle == handle, 1))
		return CUDA_SUCCESS;
	return shim_function_load(handle, functionp);
}

/*
 * The first launch of each shape is answered by the driver: block, shared memory, flags,
 * attributes (and the grid of a cooperative one or of clusters), in this context. Later
 * ones are not waited for.
 */
uint64_t shim_function_shape(const struct shim_context *context,
	const struct shim_function *function, const struct shim_launch *launch);
bool shim_function_knows(const struct shim_function *function, uint64_t shape);
void shim_function_remember(struct shim_function *function, uint64_t shape);

/* A property changed that decides whether a launch is accepted: the next launch of each
 * kind asks the driver again. */
void shim_function_forget_launches(void);

/* The program has given a kernel clusters: from now on every launch may depend on its
 * grid. */
void shim_function_note_clusters(void);
