/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Copies in graphs
 */

#include "runtime/types.h"

/* Where a copy is in a graph: a new node, or one that is changed, maybe in a graph that
 * was instantiated. */
int rt_copy_node_add(cudaGraphNode_t *nodep, cudaGraph_t graph,
	const cudaGraphNode_t *nodes, size_t n, const cudaMemcpy3DParms *params);
int rt_copy_node_add_1d(cudaGraphNode_t *nodep, cudaGraph_t graph,
	const cudaGraphNode_t *nodes, size_t n, void *dst, const void *src, size_t size,
	cudaMemcpyKind kind);
int rt_copy_node_add_to(cudaGraphNode_t *nodep, cudaGraph_t graph,
	const cudaGraphNode_t *nodes, size_t n, const void *symbol, const void *src,
	size_t size, size_t offset, cudaMemcpyKind kind);
int rt_copy_node_add_from(cudaGraphNode_t *nodep, cudaGraph_t graph,
	const cudaGraphNode_t *nodes, size_t n, void *dst, const void *symbol,
	size_t size, size_t offset, cudaMemcpyKind kind);
int rt_copy_node_get(cudaGraphNode_t node, cudaMemcpy3DParms *params);

/* exec NULL: the node in its graph. */
int rt_copy_node_set(
	cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemcpy3DParms *params);
int rt_copy_node_set_1d(cudaGraphExec_t exec, cudaGraphNode_t node, void *dst,
	const void *src, size_t size, cudaMemcpyKind kind);
int rt_copy_node_set_to(cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol,
	const void *src, size_t size, size_t offset, cudaMemcpyKind kind);
int rt_copy_node_set_from(cudaGraphExec_t exec, cudaGraphNode_t node, void *dst,
	const void *symbol, size_t size, size_t offset, cudaMemcpyKind kind);
