/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies of pageable memory in graphs
 *
 * The device cannot reach ordinary memory of the guest. So such a copy is a child graph:
 * the device copies pinned memory, which a function of the guest library fills before,
 * and another one drains afterwards if the memory that is written may be the program's
 * (graph-shadow.h). To the program the node is a copy: its parameters are those that it
 * gave, and it is disabled if the device's copy is. The pinned memory goes with the
 * functions (process/callback.h).
 */

#include <stdbool.h>

#include "vgpu/cuda.h"

/* Makes the child graph of a copy, which need not have pageable memory. */
CUresult shim_graph_pageable_new(
	const CUDA_MEMCPY3D *copy, CUcontext context, CUgraph *childp);

/* Return: whether a node is such a copy, with its parameters. */
bool shim_graph_pageable_find(CUgraphNode handle, CUDA_MEMCPY3D *copy);

/* Return: whether a node is such a copy, with the node inside it that is the device's. */
bool shim_graph_pageable_find_copy(CUgraphNode handle, CUgraphNode *innerp);

/* Replaces the copy of a node of a graph. Return: CUDA_ERROR_INVALID_VALUE unless it is
 * such a copy. */
CUresult shim_graph_pageable_set(
	CUgraphNode handle, const CUDA_MEMCPY3D *copy, CUcontext context);
