/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies that became ones of pageable memory in an executable graph
 *
 * Such a node is an ordinary copy of an executable graph, whose shape does not change.
 * The device copies shadows (graph-around.h), which are filled before each launch of the
 * whole graph and drained behind it, by functions in the stream.
 */

#include "vgpu/cuda.h"

struct shim_graph_launch;

/* Return: INVALID_VALUE if the node is not an ordinary copy. */
CUresult shim_graph_launch_set(
	CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext context);

/* The node has other parameters, or all have: those of a graph, or the executable graph
 * has ended. */
void shim_graph_launch_drop_node(CUgraphExec exec, CUgraphNode node);
void shim_graph_launch_drop(CUgraphExec exec);

/* Around a launch. *launchp is NULL if there is nothing to do. */
CUresult shim_graph_launch_begin(
	CUgraphExec exec, CUstream stream, struct shim_graph_launch **launchp);
CUresult shim_graph_launch_end(
	CUstream stream, struct shim_graph_launch *launch, CUresult launched);
