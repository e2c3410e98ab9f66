/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Batches of operations on words, as streams and graphs have them
 */

#include <stdint.h>

#include "vgpu/cuda.h"
#include "worker/base/call.h"

/* More than a driver takes at once. */
#define MEMOPS_MAX 256u

/*
 * Copies a batch and checks the ranges of its words; flags are left to the driver.
 *
 * @opsp:	in the call's memory
 *
 * Return: CUDA_ERROR_INVALID_VALUE for an empty batch, unknown operations and memory that
 * is not the guest's.
 */
CUresult memops_take(struct call *call, const ProtobufCBinaryData *bytes,
	CUstreamBatchMemOpParams **opsp, uint32_t *np);
