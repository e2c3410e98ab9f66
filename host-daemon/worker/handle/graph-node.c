/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on nodes of graphs
 *
 * A node is added, or its parameters are set, in its graph or in an executable graph, by
 * three messages with the same fields.
 */

#include "driver/driver.h"
#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/base/object-handles.h"
#include "worker/stream/graph-node.h"
#include "worker/stream/graph.h"

/* Calls the driver, if it has the function. */
#define ASK(_function, ...)                                                              \
	(call->driver->_function ? call->driver->_function(__VA_ARGS__)                  \
				 : CUDA_ERROR_NOT_SUPPORTED)

static CUresult add(struct call *call, CUgraph graph, const struct graph_names *after,
	const struct graph_node *node, CUgraphNode *addedp)
{
	switch (node->kind) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return ASK(cuGraphAddKernelNode_v2, addedp, graph, after->nodes, after->n,
			&node->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return ASK(cuGraphAddMemcpyNode, addedp, graph, after->nodes, after->n,
			&node->copy, node->context);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return ASK(cuGraphAddMemsetNode, addedp, graph, after->nodes, after->n,
			&node->fill, node->context);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return ASK(cuGraphAddEventRecordNode, addedp, graph, after->nodes,
			after->n, node->event);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return ASK(cuGraphAddEventWaitNode, addedp, graph, after->nodes, after->n,
			node->event);
	default:
		return ASK(cuGraphAddEmptyNode, addedp, graph, after->nodes, after->n);
	}
}

/* Edges with data are added after the node. */
static CUresult add_with_edges(struct call *call, CUgraph graph,
	const struct graph_names *after, const struct graph_node *node,
	CUgraphNode *addedp)
{
	static const struct graph_names nobody;
	CUgraphNode *to;
	CUresult result;

	if (!after->edges)
		return add(call, graph, after, node, addedp);
	if (!call->driver->cuGraphAddDependencies_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	to = call_alloc(call, (after->n + 1) * sizeof(*to));
	if (!to)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = add(call, graph, &nobody, node, addedp);
	if (result != CUDA_SUCCESS)
		return result;
	for (size_t i = 0; i < after->n; i++)
		to[i] = *addedp;
	result = call->driver->cuGraphAddDependencies_v2(
		graph, after->nodes, to, after->edges, after->n);
	if (result != CUDA_SUCCESS)
		call->driver->cuGraphDestroyNode(*addedp);
	return result;
}

CUresult handle_cuGraphAddNode_v2(struct call *call,
	const Vgpu__CuGraphAddNodeV2Request *request, Vgpu__CuGraphAddNodeV2Reply *reply)
{
	const struct graph_node_description given = GRAPH_NODE_DESCRIPTION(request);
	struct graph_names after;
	CUgraphNode added = NULL;
	struct object *graph;
	struct graph_node node;
	CUresult result;

	result = object_find(call, VGPU_HANDLE_GRAPH, request->h_graph, &graph);
	if (result == CUDA_SUCCESS)
		result = graph_names_take(
			call, &request->dependencies_list, &request->edges, &after);
	if (result == CUDA_SUCCESS)
		result = graph_node_take(call, &given, &node);
	if (result == CUDA_SUCCESS)
		result = add_with_edges(call, graph->driver, &after, &node, &added);
	if (result != CUDA_SUCCESS)
		return result;
	result = graph_keep_new(
		call, VGPU_HANDLE_GRAPH_NODE, added, graph, &reply->ph_graph_node);
	if (result != CUDA_SUCCESS)
		call->driver->cuGraphDestroyNode(added);
	return result;
}

CUresult handle_cuGraphNodeSetParams(struct call *call,
	const Vgpu__CuGraphNodeSetParamsRequest *request,
	Vgpu__CuGraphNodeSetParamsReply *reply)
{
	const struct graph_node_description given = GRAPH_NODE_DESCRIPTION(request);
	struct graph_node node;
	CUresult result;
	void *set;

	result = object_get(call, VGPU_HANDLE_GRAPH_NODE, request->h_node, false, &set);
	if (result == CUDA_SUCCESS)
		result = graph_node_take(call, &given, &node);
	if (result != CUDA_SUCCESS)
		return result;
	switch (node.kind) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return ASK(cuGraphKernelNodeSetParams_v2, set, &node.kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return ASK(cuGraphMemcpyNodeSetParams, set, &node.copy);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return ASK(cuGraphMemsetNodeSetParams, set, &node.fill);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return ASK(cuGraphEventRecordNodeSetEvent, set, node.event);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return ASK(cuGraphEventWaitNodeSetEvent, set, node.event);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult handle_cuGraphExecNodeSetParams(struct call *call,
	const Vgpu__CuGraphExecNodeSetParamsRequest *request,
	Vgpu__CuGraphExecNodeSetParamsReply *reply)
{
	const struct graph_node_description given = GRAPH_NODE_DESCRIPTION(request);
	void *exec, *set;
	struct graph_node node;
	CUresult result;

	result = object_get(
		call, VGPU_HANDLE_GRAPH_EXEC, request->h_graph_exec, false, &exec);
	if (result == CUDA_SUCCESS)
		result = object_get(
			call, VGPU_HANDLE_GRAPH_NODE, request->h_node, false, &set);
	if (result == CUDA_SUCCESS)
		result = graph_node_take(call, &given, &node);
	if (result != CUDA_SUCCESS)
		return result;
	switch (node.kind) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return ASK(cuGraphExecKernelNodeSetParams_v2, exec, set, &node.kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return ASK(cuGraphExecMemcpyNodeSetParams, exec, set, &node.copy,
			node.context);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return ASK(cuGraphExecMemsetNodeSetParams, exec, set, &node.fill,
			node.context);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return ASK(cuGraphExecEventRecordNodeSetEvent, exec, set, node.event);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return ASK(cuGraphExecEventWaitNodeSetEvent, exec, set, node.event);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}
