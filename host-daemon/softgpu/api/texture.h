/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Texture and surface objects, as references make them
 *
 * Such an object is in the table that kernels use, but no context's, and no call names
 * it: it lives until who made it ends it.
 */

#include "api/api.h"

/* Return: whether a texture can be made of that at all, however it is sampled. */
CUresult texture_check(const CUDA_RESOURCE_DESC *resource);

CUresult texture_make(const CUDA_RESOURCE_DESC *resource,
	const CUDA_TEXTURE_DESC *texture, unsigned long long *numberp);
CUresult surface_make(const CUDA_RESOURCE_DESC *resource, unsigned long long *numberp);

/* No kernel that uses it runs. A number of 0 is none. */
void texture_unmake(uint64_t number, bool is_surface);
