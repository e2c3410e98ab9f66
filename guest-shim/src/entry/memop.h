/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Batches of operations on words
 */

#include <stdbool.h>

#include "vgpu/cuda.h"

/* As many as the API takes at once. */
#define SHIM_MEMOPS_MAX 255u

/* Whether there are as many as the API takes, and their words are the program's; which
 * operations and flags there are is left to the driver. */
bool shim_memops_are_valid(const CUstreamBatchMemOpParams *ops, unsigned int n);
