/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies and fills, checked and put into the form in which they are carried out
 */

#include "api/api.h"

/* *pageablep, if not NULL, is set where ordinary memory takes part. Return: 0 or why not;
 * a copy of nothing is none. */
CUresult copy_prepare(struct sched_copy *to, const CUDA_MEMCPY3D *copy, bool *pageablep);
CUresult fill_prepare(struct sched_fill *to, const CUDA_MEMSET_NODE_PARAMS *fill);
