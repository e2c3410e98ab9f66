/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies and fills, checked and put into the form in which they are carried out
 */

#include "api/api.h"

/* pageablep, if not NULL, is set if pageable memory is involved. Return: 0 or the error;
 * an empty copy is valid. */
CUresult copy_prepare(struct sched_copy *to, const CUDA_MEMCPY3D *copy, bool *pageablep);
CUresult fill_prepare(struct sched_fill *to, const CUDA_MEMSET_NODE_PARAMS *fill);
