/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory that graphs allocate
 *
 * An allocation of a graph has its address, and its memory, from the time when its node
 * is added until neither the graph nor an executable graph has it and it is not in use: a
 * block of a pool that each device has for it. To the host its nodes are empty ones. What
 * is known of them is here: a launch is refused that would allocate what is in use, or
 * free what is not (CUDA Driver API, cuGraphAddMemAllocNode).
 */

#include <stdbool.h>

#include "vgpu/cuda.h"

struct shim_context;
struct shim_edges;

CUresult shim_graph_memory_add_alloc(CUgraphNode *nodep, CUgraph graph,
	const struct shim_edges *after, CUDA_MEM_ALLOC_NODE_PARAMS *params);
CUresult shim_graph_memory_add_free(CUgraphNode *nodep, CUgraph graph,
	const struct shim_edges *after, CUdeviceptr address);

/* Return: whether there ever were such nodes: most programs have none, and pay nothing.
 */
bool shim_graph_memory_has_any(void);

/* Return: whether the host's empty node is one of these, and which. */
bool shim_graph_memory_type(CUgraphNode node, CUgraphNodeType *type);

/* Return: 0 if a child with such nodes may become a part of a graph. */
CUresult shim_graph_memory_check_move(CUgraph child, CUgraph graph);

/* It has, inside a node. */
void shim_graph_memory_move(CUgraph child, CUgraph graph);

/* Return: whether a child was moved with such nodes. */
bool shim_graph_memory_was_moved(CUgraph child);

/* Return: whether a graph has such nodes: it is neither copied nor updated. */
bool shim_graph_memory_has(CUgraph graph);

/* A stream that is captured allocates or frees. */
CUresult shim_graph_memory_capture_alloc(
	CUstream stream, CUdevice device, size_t size, CUdeviceptr *addressp);
CUresult shim_graph_memory_capture_free(CUstream stream, CUdeviceptr address);

/* The capture of a stream has ended. */
void shim_graph_memory_end_capture(CUstream stream, bool is_kept);

/* An executable graph is to be made, and has been. There is one at a time. */
CUresult shim_graph_memory_check_exec(CUgraph graph);
void shim_graph_memory_note_exec(CUgraph graph, CUgraphExec exec, uint64_t flags);

void shim_graph_memory_drop_graph(CUgraph graph);
void shim_graph_memory_drop_exec(CUgraphExec exec);

/* A launch is about to be sent, and has been. */
CUresult shim_graph_memory_check_launch(CUgraphExec exec, CUstream stream);
void shim_graph_memory_note_launch(CUgraphExec exec, CUstream stream);

/* The program frees memory, after work of `user`, or NULL if all work with it is
 * complete. Return: false if it is not a graph's. */
bool shim_graph_memory_free(
	CUdeviceptr address, const struct shim_context *user, CUresult *resultp);
