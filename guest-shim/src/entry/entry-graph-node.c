/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: nodes of graphs
 *
 * The functions for one kind of node after another; graph-node.c translates their
 * parameters.
 */

#include <string.h>

#include "vgpu/g-driver.pb-c.h"

#include "entry/graph-edit.h"
#include "entry/graph-inside.h"
#include "entry/graph-memory.h"
#include "entry/graph-node.h"
#include "process/call.h"

static CUresult refuse(CUresult error)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuGraphNode);

	return shim_call_error(&call, error);
}

/* Adds what was described, unless it could not be. */
static CUresult add(CUresult described, CUgraphNode *addedp, CUgraph graph,
	const CUgraphNode *after, size_t n_after, const struct shim_node *node)
{
	const struct shim_edges edges = { .nodes = after, .n = n_after };

	return described == CUDA_SUCCESS
		       ? shim_graph_edit_add(addedp, graph, &edges, node)
		       : refuse(described);
}

static CUresult set(CUresult described, CUgraphNode handle, const struct shim_node *node)
{
	return described == CUDA_SUCCESS ? shim_graph_edit_set(handle, node)
					 : refuse(described);
}

static CUresult set_in_exec(CUresult described, CUgraphExec exec, CUgraphNode handle,
	const struct shim_node *node)
{
	return described == CUDA_SUCCESS ? shim_graph_edit_set_in_exec(exec, handle, node)
					 : refuse(described);
}

/*
 * Kernels
 */

/* The structure of CUDA 10 ends before kernel and context. */
static CUresult describe_kernel_v1(
	struct shim_node *node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS whole = {};

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&whole, params, sizeof(*params));
	return shim_graph_node_kernel(node, &whole);
}

CUresult shim_cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	struct shim_node node;

	return add(shim_graph_node_kernel(&node, nodeParams), phGraphNode, hGraph,
		dependencies, numDependencies, &node);
}

CUresult shim_cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	struct shim_node node;

	return add(describe_kernel_v1(&node, nodeParams), phGraphNode, hGraph,
		dependencies, numDependencies, &node);
}

CUresult shim_cuGraphKernelNodeGetParams_v2(
	CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	return nodeParams ? shim_graph_node_get_kernel(hNode, nodeParams)
			  : refuse(CUDA_ERROR_INVALID_VALUE);
}

CUresult shim_cuGraphKernelNodeGetParams(
	CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS whole;
	CUresult result;

	if (!nodeParams)
		return refuse(CUDA_ERROR_INVALID_VALUE);
	result = shim_graph_node_get_kernel(hNode, &whole);
	if (result != CUDA_SUCCESS)
		return result;
	memcpy(nodeParams, &whole, sizeof(*nodeParams));
	/* This version of the parameters has a function only, and no kernel. */
	if (!nodeParams->func)
		nodeParams->func = (CUfunction)whole.kern;
	return CUDA_SUCCESS;
}

CUresult shim_cuGraphKernelNodeSetParams_v2(
	CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	struct shim_node node;

	return set(shim_graph_node_kernel(&node, nodeParams), hNode, &node);
}

CUresult shim_cuGraphKernelNodeSetParams(
	CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	struct shim_node node;

	return set(describe_kernel_v1(&node, nodeParams), hNode, &node);
}

CUresult shim_cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	struct shim_node node;

	return set_in_exec(
		shim_graph_node_kernel(&node, nodeParams), hGraphExec, hNode, &node);
}

CUresult shim_cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	struct shim_node node;

	return set_in_exec(
		describe_kernel_v1(&node, nodeParams), hGraphExec, hNode, &node);
}

CUresult shim_cuGraphKernelNodeGetAttribute(
	CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *value_out)
{
	Vgpu__CuGraphKernelNodeGetAttributeRequest request =
		VGPU__CU_GRAPH_KERNEL_NODE_GET_ATTRIBUTE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGraphKernelNodeGetAttribute);
	const Vgpu__CuGraphKernelNodeGetAttributeReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	if (!value_out)
		return refuse(CUDA_ERROR_INVALID_VALUE);
	request.h_node = (uint64_t)(uintptr_t)hNode;
	request.attr = (int32_t)attr;
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_graph_kernel_node_get_attribute_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuGraphKernelNodeGetAttributeReply *)message;
	if (reply->value.len != sizeof(*value_out))
		return CUDA_ERROR_UNKNOWN;
	memcpy(value_out, reply->value.data, sizeof(*value_out));
	return CUDA_SUCCESS;
}

CUresult shim_cuGraphKernelNodeSetAttribute(
	CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value)
{
	Vgpu__CuGraphKernelNodeSetAttributeRequest request =
		VGPU__CU_GRAPH_KERNEL_NODE_SET_ATTRIBUTE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGraphKernelNodeSetAttribute);

	if (!value)
		return refuse(CUDA_ERROR_INVALID_VALUE);
	request.h_node = (uint64_t)(uintptr_t)hNode;
	request.attr = (int32_t)attr;
	request.value_bytes.data = (uint8_t *)value;
	request.value_bytes.len = sizeof(*value);
	return shim_call_sync(&call, &request.base,
		&vgpu__cu_graph_kernel_node_set_attribute_reply__descriptor, NULL);
}

/*
 * Copies
 */

CUresult shim_cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	struct shim_node node;

	return add(shim_graph_node_copy(&node, copyParams, ctx), phGraphNode, hGraph,
		dependencies, numDependencies, &node);
}

CUresult shim_cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
	return nodeParams ? shim_graph_edit_get_copy(hNode, nodeParams)
			  : refuse(CUDA_ERROR_INVALID_VALUE);
}

CUresult shim_cuGraphMemcpyNodeSetParams(
	CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
	struct shim_node node;

	return set(shim_graph_node_copy(&node, nodeParams, NULL), hNode, &node);
}

CUresult shim_cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	struct shim_node node;

	return set_in_exec(
		shim_graph_node_copy(&node, copyParams, ctx), hGraphExec, hNode, &node);
}

/*
 * Fills
 */

CUresult shim_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	struct shim_node node;

	return add(shim_graph_node_fill(&node, memsetParams, ctx), phGraphNode, hGraph,
		dependencies, numDependencies, &node);
}

CUresult shim_cuGraphMemsetNodeGetParams(
	CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	return nodeParams ? shim_graph_node_get_fill(hNode, nodeParams)
			  : refuse(CUDA_ERROR_INVALID_VALUE);
}

CUresult shim_cuGraphMemsetNodeSetParams(
	CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	struct shim_node node;

	return set(shim_graph_node_fill(&node, nodeParams, NULL), hNode, &node);
}

CUresult shim_cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	struct shim_node node;

	return set_in_exec(
		shim_graph_node_fill(&node, memsetParams, ctx), hGraphExec, hNode, &node);
}

/*
 * Event nodes, and empty ones
 */

CUresult shim_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies)
{
	const struct shim_node node = { .kind = CU_GRAPH_NODE_TYPE_EMPTY };

	return add(
		CUDA_SUCCESS, phGraphNode, hGraph, dependencies, numDependencies, &node);
}

CUresult shim_cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUevent event)
{
	struct shim_node node;

	return add(shim_graph_node_event(&node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event),
		phGraphNode, hGraph, dependencies, numDependencies, &node);
}

CUresult shim_cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUevent event)
{
	struct shim_node node;

	return add(shim_graph_node_event(&node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event),
		phGraphNode, hGraph, dependencies, numDependencies, &node);
}

static CUresult get_event(CUgraphNode handle, CUgraphNodeType kind, CUevent *eventp)
{
	return eventp ? shim_graph_node_get_event(handle, kind, eventp)
		      : refuse(CUDA_ERROR_INVALID_VALUE);
}

CUresult shim_cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	return get_event(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out);
}

CUresult shim_cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	return get_event(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out);
}

static CUresult set_event(CUgraphNode handle, CUgraphNodeType kind, CUevent event)
{
	struct shim_node node;

	return set(shim_graph_node_event(&node, kind, event), handle, &node);
}

CUresult shim_cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	return set_event(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult shim_cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	return set_event(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

static CUresult set_event_in_exec(
	CUgraphExec exec, CUgraphNode handle, CUgraphNodeType kind, CUevent event)
{
	struct shim_node node;

	return set_in_exec(
		shim_graph_node_event(&node, kind, event), exec, handle, &node);
}

CUresult shim_cuGraphExecEventRecordNodeSetEvent(
	CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
	return set_event_in_exec(
		hGraphExec, hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult shim_cuGraphExecEventWaitNodeSetEvent(
	CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
	return set_event_in_exec(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

/*
 * Functions of the program
 */

CUresult shim_cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	struct shim_node node;

	return add(shim_graph_node_host(&node, nodeParams), phGraphNode, hGraph,
		dependencies, numDependencies, &node);
}

CUresult shim_cuGraphHostNodeGetParams(
	CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
	return nodeParams ? shim_graph_node_get_host(hNode, nodeParams)
			  : refuse(CUDA_ERROR_INVALID_VALUE);
}

CUresult shim_cuGraphHostNodeSetParams(
	CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	struct shim_node node;

	return set(shim_graph_node_host(&node, nodeParams), hNode, &node);
}

CUresult shim_cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	struct shim_node node;

	return set_in_exec(
		shim_graph_node_host(&node, nodeParams), hGraphExec, hNode, &node);
}

/*
 * Graphs in graphs
 */

CUresult shim_cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUgraph childGraph)
{
	struct shim_node node;

	return add(shim_graph_node_child(&node, childGraph), phGraphNode, hGraph,
		dependencies, numDependencies, &node);
}

CUresult shim_cuGraphExecChildGraphNodeSetParams(
	CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)
{
	struct shim_node node;

	return set_in_exec(
		shim_graph_node_child(&node, childGraph), hGraphExec, hNode, &node);
}

/*
 * Batches of operations on words
 */

CUresult shim_cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	struct shim_node node;

	return add(shim_graph_node_batch(&node, nodeParams), phGraphNode, hGraph,
		dependencies, numDependencies, &node);
}

CUresult shim_cuGraphBatchMemOpNodeGetParams(
	CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out)
{
	return nodeParams_out ? shim_graph_node_get_batch(hNode, nodeParams_out)
			      : refuse(CUDA_ERROR_INVALID_VALUE);
}

CUresult shim_cuGraphBatchMemOpNodeSetParams(
	CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	struct shim_node node;

	return set(shim_graph_node_batch(&node, nodeParams), hNode, &node);
}

CUresult shim_cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec,
	CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	struct shim_node node;

	return set_in_exec(
		shim_graph_node_batch(&node, nodeParams), hGraphExec, hNode, &node);
}

/*
 * Any kind
 */

/* The memory of a child that is moved becomes that of the graph around it. */
static CUresult add_moved(
	CUgraphNode *addedp, CUgraph graph, const struct shim_edges *edges, CUgraph child)
{
	struct shim_node node;
	CUgraphNode added;
	CUresult result;

	result = addedp ? shim_graph_memory_check_move(child, graph)
			: CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return refuse(result);
	if (!shim_graph_inside_prepare(child))
		return refuse(CUDA_ERROR_OUT_OF_MEMORY);
	result = shim_graph_node_moved(&node, child);
	if (result == CUDA_SUCCESS)
		result = shim_graph_edit_add(&added, graph, edges, &node);
	if (result != CUDA_SUCCESS)
		return result;
	shim_graph_inside_note(child);
	shim_graph_memory_move(child, graph);
	*addedp = added;
	return CUDA_SUCCESS;
}

static CUresult add_conditional(CUgraphNode *addedp, CUgraph graph,
	const struct shim_edges *edges, CUDA_CONDITIONAL_NODE_PARAMS *params)
{
	CUgraph bodies[VGPU_GRAPH_BODIES_MAX];
	struct shim_node node;
	CUgraphNode added;
	CUresult result;

	result = addedp ? shim_graph_node_conditional(&node, params, bodies)
			: CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return refuse(result);
	result = shim_graph_edit_add(&added, graph, edges, &node);
	if (result != CUDA_SUCCESS)
		return result;
	if (!shim_graph_inside_keep(added, graph, params, bodies)) {
		shim_cuGraphDestroyNode(added);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*addedp = added;
	return CUDA_SUCCESS;
}

CUresult shim_cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	const struct shim_edges edges = {
		.nodes = dependencies,
		.data = dependencyData,
		.n = numDependencies,
	};
	struct shim_node node;
	CUresult result;

	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		return shim_graph_memory_add_alloc(phGraphNode, hGraph, &edges,
			(CUDA_MEM_ALLOC_NODE_PARAMS *)&nodeParams->alloc);
	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		return shim_graph_memory_add_free(
			phGraphNode, hGraph, &edges, nodeParams->free.dptr);
	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH &&
		nodeParams->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
		return add_moved(phGraphNode, hGraph, &edges, nodeParams->graph.graph);
	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return add_conditional(
			phGraphNode, hGraph, &edges, &nodeParams->conditional);
	result = shim_graph_node_generic(&node, nodeParams);
	return result == CUDA_SUCCESS
		       ? shim_graph_edit_add(phGraphNode, hGraph, &edges, &node)
		       : refuse(result);
}

CUresult shim_cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	CUgraphNodeParams *nodeParams)
{
	return shim_cuGraphAddNode_v2(
		phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams);
}

CUresult shim_cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	struct shim_node node;

	return set(shim_graph_node_generic(&node, nodeParams), hNode, &node);
}

CUresult shim_cuGraphExecNodeSetParams(
	CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	struct shim_node node;

	return set_in_exec(
		shim_graph_node_generic(&node, nodeParams), hGraphExec, hNode, &node);
}
