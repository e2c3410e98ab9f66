/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: nodes that are added, and their parameters
 */

#include <string.h>

#include "api/graph.h"

/* With the lock, which it releases: work that was made, or r why it was not. */
static CUresult node_add(CUgraphNode *nodep, CUgraph graph, const CUgraphNode *before,
	size_t n, struct graph_work *work, CUresult result)
{
	if (result)
		return graph_leave(result);
	result = nodep ? graph_get(graph) : CUDA_ERROR_INVALID_VALUE;
	/* The handle of a graph that was destroyed may be the address of a copy that was
	 * made for this very node. */
	if (!result && work->type == CU_GRAPH_NODE_TYPE_GRAPH &&
		graph_is_within(graph, work->child))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = graph_add(nodep, graph, before, n, work);
	if (result)
		work_deinit(work);
	return graph_leave(result);
}

/* The same for work that takes the place of a node's. */
static CUresult node_set(CUgraphNode node, struct graph_work *work, CUresult result)
{
	if (result)
		return graph_leave(result);
	if (graph_get_node(node) || node->work.type != work->type ||
		work->type == CU_GRAPH_NODE_TYPE_GRAPH)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (work->type == CU_GRAPH_NODE_TYPE_KERNEL)
		result = kernel_copy_attributes(&work->kernel, &node->work.kernel);
	if (!result) {
		work_deinit(&node->work);
		node->work = *work;
	} else {
		work_deinit(work);
	}
	return graph_leave(result);
}

/* With the lock: a node of that type. */
static CUresult node_get(CUgraphNode node, CUgraphNodeType type, const void *result)
{
	if (graph_get_node(node) || node->work.type != type || !result)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/*
 * Kernels
 */

static CUresult kernel_upgrade(
	CUDA_KERNEL_NODE_PARAMS *to, const CUDA_KERNEL_NODE_PARAMS_v1 *from)
{
	*to = (CUDA_KERNEL_NODE_PARAMS){ 0 };
	if (!from)
		return CUDA_ERROR_INVALID_VALUE;
	/* New nodes are at the end. */
	memcpy(to, from, sizeof(*from));
	return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	return node_add(phGraphNode, hGraph, dependencies, numDependencies, &work,
		work_kernel(&work, nodeParams));
}

CUresult cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	API_CALL;
	CUDA_KERNEL_NODE_PARAMS params;

	return kernel_upgrade(&params, nodeParams)
		       ? CUDA_ERROR_INVALID_VALUE
		       : cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies,
				 numDependencies, &params);
}

CUresult cuGraphKernelNodeSetParams_v2(
	CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	return result ? result : node_set(hNode, &work, work_kernel(&work, nodeParams));
}

CUresult cuGraphKernelNodeSetParams(
	CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	API_CALL;
	CUDA_KERNEL_NODE_PARAMS params;

	return kernel_upgrade(&params, nodeParams)
		       ? CUDA_ERROR_INVALID_VALUE
		       : cuGraphKernelNodeSetParams_v2(hNode, &params);
}

CUresult cuGraphKernelNodeGetParams_v2(
	CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	API_CALL;
	const struct graph_kernel *kernel;
	const struct launch *launch;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = node_get(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams);
	if (result)
		return graph_leave(result);
	kernel = &hNode->work.kernel;
	launch = &kernel->launch;
	object_keep_for_thread(kernel->block);
	*nodeParams = (CUDA_KERNEL_NODE_PARAMS){
		.func = kernel->kernel ? NULL : kernel->function,
		.gridDimX = launch->grid[0],
		.gridDimY = launch->grid[1],
		.gridDimZ = launch->grid[2],
		.blockDimX = launch->block[0],
		.blockDimY = launch->block[1],
		.blockDimZ = launch->block[2],
		.sharedMemBytes = launch->shared_size,
		.kernelParams =
			kernel->function->info->n_params ? kernel->pointers : NULL,
		.kern = kernel->kernel,
		.ctx = kernel->kernel ? kernel->context : NULL,
	};
	return graph_leave(CUDA_SUCCESS);
}

CUresult cuGraphKernelNodeGetParams(
	CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	API_CALL;
	CUDA_KERNEL_NODE_PARAMS params;
	CUresult result;

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	result = cuGraphKernelNodeGetParams_v2(hNode, &params);
	if (result)
		return result;
	memcpy(nodeParams, &params, sizeof(*nodeParams));
	/* This version of the structure has no field for a kernel, only for its function.
	 */
	if (params.kern)
		nodeParams->func = (CUfunction)params.kern;
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(
	CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = node_get(hNode, CU_GRAPH_NODE_TYPE_KERNEL, value);
	if (!result)
		result = kernel_set_attribute(&hNode->work, attr, value);
	return graph_leave(result);
}

CUresult cuGraphKernelNodeGetAttribute(
	CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *value_out)
{
	API_CALL;
	const struct graph_kernel *kernel;
	struct launch launch = { 0 };
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = node_get(hNode, CU_GRAPH_NODE_TYPE_KERNEL, value_out);
	if (result)
		return graph_leave(result);
	kernel = &hNode->work.kernel;
	memset(value_out, 0, sizeof(*value_out));
	if (attr == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
		value_out->cooperative = kernel->launch.is_cooperative;
		return graph_leave(CUDA_SUCCESS);
	}
	/* One that was never set is 0. */
	if (attr == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
		value_out->clusterDim.x = kernel->launch.cluster[0];
		value_out->clusterDim.y = kernel->launch.cluster[1];
		value_out->clusterDim.z = kernel->launch.cluster[2];
		return graph_leave(CUDA_SUCCESS);
	}
	if (attr == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION) {
		value_out->preferredClusterDim.x = kernel->launch.preferred[0];
		value_out->preferredClusterDim.y = kernel->launch.preferred[1];
		value_out->preferredClusterDim.z = kernel->launch.preferred[2];
		return graph_leave(CUDA_SUCCESS);
	}
	for (size_t i = 0; i < kernel->n_attributes; i++)
		if (kernel->attributes[i].id == attr) {
			*value_out = kernel->attributes[i].value;
			return graph_leave(CUDA_SUCCESS);
		}
	return graph_leave(launch_attribute(&launch, &(CUlaunchAttribute){ .id = attr }));
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = node_get(dst, CU_GRAPH_NODE_TYPE_KERNEL, dst);
	if (!result)
		result = node_get(src, CU_GRAPH_NODE_TYPE_KERNEL, src);
	if (!result && dst != src)
		result = kernel_copy_attributes(&dst->work.kernel, &src->work.kernel);
	return graph_leave(result);
}

/*
 * Copies and fills
 */

CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	return node_add(phGraphNode, hGraph, dependencies, numDependencies, &work,
		work_copy(&work, copyParams, ctx));
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = node_get(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams);
	if (!result)
		*nodeParams = hNode->work.copy.copy;
	return graph_leave(result);
}

/* The context of a node stays. */
static CUcontext node_context(CUgraphNode node)
{
	CUcontext context = NULL;
	uint64_t generation;

	if (!graph_get_node(node))
		work_context(&node->work, &context, &generation);
	return context;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	return node_set(hNode, &work, work_copy(&work, nodeParams, node_context(hNode)));
}

CUresult cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	return node_add(phGraphNode, hGraph, dependencies, numDependencies, &work,
		work_fill(&work, memsetParams, ctx));
}

CUresult cuGraphMemsetNodeGetParams(
	CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = node_get(hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams);
	if (!result)
		*nodeParams = hNode->work.fill.fill;
	return graph_leave(result);
}

CUresult cuGraphMemsetNodeSetParams(
	CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	return node_set(hNode, &work, work_fill(&work, nodeParams, node_context(hNode)));
}

/*
 * Batches of operations on words
 */

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	return node_add(phGraphNode, hGraph, dependencies, numDependencies, &work,
		work_batch(&work, nodeParams));
}

CUresult cuGraphBatchMemOpNodeGetParams(
	CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out)
{
	API_CALL;
	const struct graph_batch *batch;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = node_get(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, nodeParams_out);
	if (result)
		return graph_leave(result);
	batch = &hNode->work.batch;
	object_keep_for_thread(batch->block);
	*nodeParams_out = (CUDA_BATCH_MEM_OP_NODE_PARAMS){
		.ctx = batch->context,
		.count = batch->n,
		.paramArray = batch->ops,
		.flags = batch->flags,
	};
	return graph_leave(CUDA_SUCCESS);
}

CUresult cuGraphBatchMemOpNodeSetParams(
	CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	return result ? result : node_set(hNode, &work, work_batch(&work, nodeParams));
}

/*
 * Functions of the program, children, events, and empty nodes
 */

CUresult cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	return node_add(phGraphNode, hGraph, dependencies, numDependencies, &work,
		work_host(&work, nodeParams));
}

CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = node_get(hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams);
	if (!result)
		*nodeParams = hNode->work.host;
	return graph_leave(result);
}

CUresult cuGraphHostNodeSetParams(
	CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	return result ? result : node_set(hNode, &work, work_host(&work, nodeParams));
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUgraph childGraph)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	/* Before it is copied. */
	if (!graph_get(hGraph) && !graph_get(childGraph) &&
		!graph_has_room(hGraph, childGraph))
		return graph_leave(CUDA_ERROR_OUT_OF_MEMORY);
	return node_add(phGraphNode, hGraph, dependencies, numDependencies, &work,
		work_child(&work, childGraph));
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
	API_CALL;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = node_get(hNode, CU_GRAPH_NODE_TYPE_GRAPH, phGraph);
	if (!result)
		*phGraph = hNode->work.child;
	return graph_leave(result);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies)
{
	API_CALL;
	struct graph_work work = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	return node_add(
		phGraphNode, hGraph, dependencies, numDependencies, &work, CUDA_SUCCESS);
}

static CUresult event_add(CUgraphNode *nodep, CUgraph graph, const CUgraphNode *before,
	size_t n, CUgraphNodeType type, CUevent event)
{
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	return node_add(nodep, graph, before, n, &work, work_event(&work, type, event));
}

static CUresult event_get(CUgraphNode node, CUgraphNodeType type, CUevent *eventp)
{
	CUresult result;

	result = graph_enter();
	if (result)
		return result;
	result = node_get(node, type, eventp);
	if (!result)
		*eventp = node->work.event;
	return graph_leave(result);
}

static CUresult event_set(CUgraphNode node, CUgraphNodeType type, CUevent event)
{
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	return result ? result : node_set(node, &work, work_event(&work, type, event));
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUevent event)
{
	API_CALL;

	return event_add(phGraphNode, hGraph, dependencies, numDependencies,
		CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	API_CALL;

	return event_get(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out);
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	API_CALL;

	return event_set(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUevent event)
{
	API_CALL;

	return event_add(phGraphNode, hGraph, dependencies, numDependencies,
		CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	API_CALL;

	return event_get(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out);
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	API_CALL;

	return event_set(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

/*
 * Nodes of any kind
 */

/* With the lock, which it releases. */
static CUresult conditional_add(CUgraphNode *nodep, CUgraph graph,
	const CUgraphNode *before, size_t n, CUDA_CONDITIONAL_NODE_PARAMS *params)
{
	struct graph_work work = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
	CUgraph *bodies;
	CUresult result;

	result = work_conditional(&work, graph, params);
	if (result)
		return graph_leave(result);
	/* The list is as valid as the node, and so long for this thread. */
	object_keep_for_thread(work.conditional.block);
	bodies = work.conditional.bodies;
	result = node_add(nodep, graph, before, n, &work, CUDA_SUCCESS);
	if (!result)
		params->phGraph_out = bodies;
	return result;
}

/* With the lock: the child itself is inside the node, which cannot be changed back. */
static CUresult move_child(CUgraphNode *nodep, CUgraph graph, const CUgraphNode *before,
	size_t n, CUgraph child)
{
	struct graph_work work = { .type = CU_GRAPH_NODE_TYPE_GRAPH, .child = child };
	CUresult result;

	if (!nodep || graph_get(graph) || graph_get(child) || child->parent ||
		child->n_captures || graph_is_within(graph, child))
		return CUDA_ERROR_INVALID_VALUE;
	if (child->n_conditionals)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = graph_add(nodep, graph, before, n, &work);
	if (result)
		child->parent = NULL;
	else
		child->is_moved = true;
	return result;
}

CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	if (!graph_edges_are_plain(dependencyData, numDependencies))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = graph_enter();
	if (result)
		return result;
	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH &&
		nodeParams->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
		return graph_leave(move_child(phGraphNode, hGraph, dependencies,
			numDependencies, nodeParams->graph.graph));
	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return conditional_add(phGraphNode, hGraph, dependencies, numDependencies,
			&nodeParams->conditional);
	return node_add(phGraphNode, hGraph, dependencies, numDependencies, &work,
		work_any(&work, nodeParams));
}

CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	CUgraphNodeParams *nodeParams)
{
	return cuGraphAddNode_v2(
		phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams);
}

CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	API_CALL;
	struct graph_work work;
	CUresult result;

	result = graph_enter();
	return result ? result : node_set(hNode, &work, work_any(&work, nodeParams));
}
