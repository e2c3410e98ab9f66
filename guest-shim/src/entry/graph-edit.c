/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of graphs as programs make and change them
 */

#include "entry/graph-around.h"
#include "entry/graph-edit.h"
#include "entry/graph-launch.h"
#include "entry/graph-node.h"
#include "entry/graph-pageable.h"
#include "g-remote.h"
#include "process/call.h"

/* Describes the child graph of a copy. */
static CUresult describe_child(struct shim_node *child, const struct shim_node *node)
{
	*child = (struct shim_node){
		.kind = CU_GRAPH_NODE_TYPE_GRAPH,
		.context = node->context,
	};
	return shim_graph_pageable_new(&node->detail.copy, node->context, &child->child);
}

static CUresult add_pageable(CUgraphNode *addedp, CUgraph graph,
	const struct shim_edges *after, const struct shim_node *node)
{
	struct shim_node child;
	CUresult result;

	if (addedp && shim_graph_around_is_for(graph))
		return shim_graph_around_add(
			addedp, graph, after, &node->detail.copy, node->context);
	result = describe_child(&child, node);
	if (result != CUDA_SUCCESS)
		return result;
	result = shim_graph_node_add(addedp, graph, after, &child);
	shim_cuGraphDestroy(child.child);
	return result;
}

/* What is filled and drained around a node of a child would have to be so in its copy. */
static bool has_around(const struct shim_node *node)
{
	return node->kind == CU_GRAPH_NODE_TYPE_GRAPH &&
	       shim_graph_around_has(node->child);
}

CUresult shim_graph_edit_add(CUgraphNode *addedp, CUgraph graph,
	const struct shim_edges *after, const struct shim_node *node)
{
	CUresult result;

	if (has_around(node))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (node->is_pageable)
		return add_pageable(addedp, graph, after, node);
	result = shim_graph_node_add(addedp, graph, after, node);
	if (result == CUDA_SUCCESS && node->kind == CU_GRAPH_NODE_TYPE_MEMCPY)
		shim_graph_around_note(*addedp, graph);
	return result;
}

static CUresult set_pageable(CUgraphNode handle, const struct shim_node *node)
{
	CUresult result;

	result = shim_graph_pageable_set(handle, &node->detail.copy, node->context);
	return result == CUDA_ERROR_INVALID_VALUE
		       ? shim_graph_around_set(handle, &node->detail.copy, node->context)
		       : result;
}

CUresult shim_graph_edit_set(CUgraphNode handle, const struct shim_node *node)
{
	CUresult result;

	if (has_around(node))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (node->is_pageable)
		return set_pageable(handle, node);
	result = shim_graph_node_set(handle, node);
	if (result == CUDA_SUCCESS)
		shim_graph_around_drop_node(handle);
	/* A node whose copy had pageable memory keeps its shape. */
	return result == CUDA_ERROR_INVALID_VALUE &&
			       node->kind == CU_GRAPH_NODE_TYPE_MEMCPY
		       ? shim_graph_pageable_set(
				 handle, &node->detail.copy, node->context)
		       : result;
}

/* A node whose copy has or had pageable memory. Return: INVALID_VALUE if it has not. */
static CUresult set_child_in_exec(
	CUgraphExec exec, CUgraphNode handle, const struct shim_node *node)
{
	CUDA_MEMCPY3D before;
	struct shim_node child;
	CUresult result;

	if (!shim_graph_pageable_find(handle, &before))
		return CUDA_ERROR_INVALID_VALUE;
	result = describe_child(&child, node);
	if (result != CUDA_SUCCESS)
		return result;
	result = shim_graph_node_set_in_exec(exec, handle, &child);
	shim_cuGraphDestroy(child.child);
	return result;
}

CUresult shim_graph_edit_set_in_exec(
	CUgraphExec exec, CUgraphNode handle, const struct shim_node *node)
{
	CUresult result;

	if (has_around(node))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (node->is_pageable) {
		result = set_child_in_exec(exec, handle, node);
		return result == CUDA_ERROR_INVALID_VALUE
			       ? shim_graph_launch_set(
					 exec, handle, &node->detail.copy, node->context)
			       : result;
	}
	result = shim_graph_node_set_in_exec(exec, handle, node);
	if (result == CUDA_SUCCESS)
		shim_graph_launch_drop_node(exec, handle);
	return result == CUDA_ERROR_INVALID_VALUE &&
			       node->kind == CU_GRAPH_NODE_TYPE_MEMCPY
		       ? set_child_in_exec(exec, handle, node)
		       : result;
}

CUresult shim_graph_edit_get_copy(CUgraphNode handle, CUDA_MEMCPY3D *copy)
{
	CUresult result;

	if (shim_graph_around_find(handle, copy))
		return CUDA_SUCCESS;
	result = shim_graph_node_get_copy(handle, copy);
	return result != CUDA_SUCCESS && shim_graph_pageable_find(handle, copy)
		       ? CUDA_SUCCESS
		       : result;
}

CUresult shim_graph_edit_capture(CUstream stream, const CUDA_MEMCPY3D *copy)
{
	const CUgraphNode *dependencies;
	CUstreamCaptureStatus status;
	struct shim_edges edges = {};
	CUcontext context = NULL;
	struct shim_node node;
	CUgraphNode added;
	CUresult result;
	CUgraph graph;

	result = shim_cuCtxGetCurrent(&context);
	if (result == CUDA_SUCCESS)
		result = shim_cuStreamGetCaptureInfo_v2(
			stream, &status, NULL, &graph, &dependencies, &edges.n);
	if (result != CUDA_SUCCESS)
		return result;
	edges.nodes = dependencies;
	result = shim_graph_node_copy(&node, copy, context);
	if (result == CUDA_SUCCESS)
		result = shim_graph_edit_add(&added, graph, &edges, &node);
	return result == CUDA_SUCCESS
		       ? shim_cuStreamUpdateCaptureDependencies(
				 stream, &added, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		       : result;
}
