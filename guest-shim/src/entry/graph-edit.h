/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Nodes of graphs as programs make and change them
 *
 * These functions do what those of graph-node.h do, and decide how a copy is made that
 * has memory which the device cannot reach: as a child graph (graph-pageable.h), around
 * a node (graph-around.h), or around launches (graph-launch.h).
 */

#include "vgpu/cuda.h"

struct shim_edges;
struct shim_node;

CUresult shim_graph_edit_add(CUgraphNode *addedp, CUgraph graph,
	const struct shim_edges *after, const struct shim_node *node);
CUresult shim_graph_edit_set(CUgraphNode handle, const struct shim_node *node);
CUresult shim_graph_edit_set_in_exec(
	CUgraphExec exec, CUgraphNode handle, const struct shim_node *node);
CUresult shim_graph_edit_get_copy(CUgraphNode handle, CUDA_MEMCPY3D *copy);

/* Makes a node of a copy in a stream that is captured. */
CUresult shim_graph_edit_capture(CUstream stream, const CUDA_MEMCPY3D *copy);
