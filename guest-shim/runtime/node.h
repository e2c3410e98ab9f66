/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Nodes of graphs, and graphs that are run
 */

#include "runtime/order.h"
#include "runtime/types.h"

int rt_graph_instantiate(cudaGraphExec_t *execp, cudaGraph_t graph,
	cudaGraphInstantiateParams *params, struct rt_order order);
int rt_graph_conditional(cudaGraphConditionalHandle *handlep, cudaGraph_t graph,
	unsigned int value, unsigned int flags);

/* Of any type. */
int rt_node_add(cudaGraphNode_t *nodep, cudaGraph_t graph, const cudaGraphNode_t *nodes,
	const cudaGraphEdgeData *edges, size_t n, cudaGraphNodeParams *params);
int rt_node_set(cudaGraphNode_t node, cudaGraphNodeParams *params);
int rt_node_set_exec(
	cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeParams *params);

int rt_kernel_node_add(cudaGraphNode_t *nodep, cudaGraph_t graph,
	const cudaGraphNode_t *nodes, size_t n, const cudaKernelNodeParams *params);
int rt_kernel_node_get(cudaGraphNode_t node, cudaKernelNodeParams *params);
int rt_kernel_node_set(cudaGraphNode_t node, const cudaKernelNodeParams *params);
int rt_kernel_node_set_exec(
	cudaGraphExec_t exec, cudaGraphNode_t node, const cudaKernelNodeParams *params);

int rt_fill_node_add(cudaGraphNode_t *nodep, cudaGraph_t graph,
	const cudaGraphNode_t *nodes, size_t n, const cudaMemsetParams *params);
int rt_fill_node_get(cudaGraphNode_t node, cudaMemsetParams *params);
int rt_fill_node_set(cudaGraphNode_t node, const cudaMemsetParams *params);
int rt_fill_node_set_exec(
	cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemsetParams *params);
