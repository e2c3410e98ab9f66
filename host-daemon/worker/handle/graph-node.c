/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on nodes of graphs
 *
 * A node is added, or its parameters are set, in its graph or in an executable graph, by
 * three messages with the same fields.
 */

#include <string.h>

#include "driver/driver.h"
#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/stream/functions.h"
#include "worker/stream/graph-node.h"
#include "worker/stream/graph.h"

/*
 * A function that a node names, or the graphs inside it: what has to be released once the
 * node is destroyed or names another one.
 */
struct inside {
	void *token;
	CUgraph child;
	uint32_t n_bodies;
	CUgraph bodies[VGPU_GRAPH_BODIES_MAX];
};

/* With destroy_lock. */
static struct inside look_inside(struct call *call, const struct object *object)
{
	const struct graph_entry *entry = (const struct graph_entry *)object;
	const struct vgpu_driver *driver = call->driver;
	CUgraphNode node = object->driver;
	CUDA_HOST_NODE_PARAMS host = {};
	struct inside inside = {};
	CUgraphNodeType type;

	if (!driver->cuGraphNodeGetType ||
		driver->cuGraphNodeGetType(node, &type) != CUDA_SUCCESS)
		return inside;
	if (type == CU_GRAPH_NODE_TYPE_HOST && driver->cuGraphHostNodeGetParams &&
		driver->cuGraphHostNodeGetParams(node, &host) == CUDA_SUCCESS)
		inside.token = host.userData;
	if (type == CU_GRAPH_NODE_TYPE_GRAPH && driver->cuGraphChildGraphNodeGetGraph &&
		driver->cuGraphChildGraphNodeGetGraph(node, &inside.child) !=
			CUDA_SUCCESS)
		inside.child = NULL;
	inside.n_bodies = entry->n_bodies;
	if (entry->n_bodies)
		memcpy(inside.bodies, entry->bodies,
			entry->n_bodies * sizeof(*inside.bodies));
	return inside;
}

/* Calls the driver, if it has the function. */
#define ASK(_function, ...)                                                              \
	(call->driver->_function ? call->driver->_function(__VA_ARGS__)                  \
				 : CUDA_ERROR_NOT_SUPPORTED)

static CUresult add_conditional(struct call *call, CUgraph graph,
	const struct graph_names *after, struct graph_node *node, CUgraphNode *addedp)
{
	CUgraphNodeParams params = {
		.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
		.conditional = node->conditional,
	};
	CUresult result;

	result = ASK(
		cuGraphAddNode_v2, addedp, graph, after->nodes, NULL, after->n, &params);
	node->conditional.phGraph_out = params.conditional.phGraph_out;
	return result;
}

static CUresult add_moved(struct call *call, CUgraph graph,
	const struct graph_names *after, const struct graph_node *node,
	CUgraphNode *addedp)
{
	CUgraphNodeParams params = {
		.type = CU_GRAPH_NODE_TYPE_GRAPH,
		.graph = { node->child, node->ownership },
	};

	return ASK(
		cuGraphAddNode_v2, addedp, graph, after->nodes, NULL, after->n, &params);
}

static CUresult add(struct call *call, CUgraph graph, const struct graph_names *after,
	struct graph_node *node, CUgraphNode *addedp)
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
	case CU_GRAPH_NODE_TYPE_HOST:
		return ASK(cuGraphAddHostNode, addedp, graph, after->nodes, after->n,
			&node->host);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		if (node->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
			return add_moved(call, graph, after, node, addedp);
		return ASK(cuGraphAddChildGraphNode, addedp, graph, after->nodes,
			after->n, node->child);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return ASK(cuGraphAddBatchMemOpNode, addedp, graph, after->nodes,
			after->n, &node->batch);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return add_conditional(call, graph, after, node, addedp);
	default:
		return ASK(cuGraphAddEmptyNode, addedp, graph, after->nodes, after->n);
	}
}

/* Edges with data are added after the node. */
static CUresult add_with_edges(struct call *call, CUgraph graph,
	const struct graph_names *after, struct graph_node *node, CUgraphNode *addedp)
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

/* So that neither the graph nor the node is destroyed before all have their handles. */
static CUresult keep_conditional(struct call *call,
	const Vgpu__CuGraphAddNodeV2Request *request, const struct graph_names *after,
	const struct graph_node_description *given, Vgpu__CuGraphAddNodeV2Reply *reply)
{
	CUgraphNode added = NULL;
	struct graph_node node;
	struct object *graph;
	CUresult result;

	result = object_find(call, VGPU_HANDLE_GRAPH, request->h_graph, &graph);
	if (result == CUDA_SUCCESS)
		result = graph_node_take_conditional(call, given, graph, &node);
	if (result == CUDA_SUCCESS)
		result = add_with_edges(call, graph->driver, after, &node, &added);
	if (result != CUDA_SUCCESS)
		return result;
	result = graph_keep_conditional(call, added, &node.conditional, graph,
		&reply->ph_graph_node, &reply->bodies);
	if (result != CUDA_SUCCESS)
		call->driver->cuGraphDestroyNode(added);
	return result;
}

/* A child that its node takes over ends with the graph around it, as its entry does. */
static CUresult keep_moved(struct call *call,
	const Vgpu__CuGraphAddNodeV2Request *request, const struct graph_names *after,
	struct graph_node *node, Vgpu__CuGraphAddNodeV2Reply *reply)
{
	struct object_table *table = &call->session->objects[VGPU_HANDLE_GRAPH];
	struct object *graph, *child;
	CUgraphNode added = NULL;
	CUresult result;

	result = object_find(call, VGPU_HANDLE_GRAPH, request->h_graph, &graph);
	if (result == CUDA_SUCCESS)
		result = object_find(call, VGPU_HANDLE_GRAPH, request->child, &child);
	if (result == CUDA_SUCCESS &&
		(child->driver != node->child || graph_is_around(child, graph) ||
			!object_table_adopt(table, request->child, graph)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	result = add_with_edges(call, graph->driver, after, node, &added);
	if (result != CUDA_SUCCESS) {
		child->parent = NULL;
		return result;
	}
	result = graph_keep_new(
		call, VGPU_HANDLE_GRAPH_NODE, added, graph, &reply->ph_graph_node);
	if (result != CUDA_SUCCESS) {
		call->driver->cuGraphDestroyNode(added);
		graph_forget_handle(call->session, request->child);
	}
	return result;
}

static CUresult add_moved_node(struct call *call,
	const Vgpu__CuGraphAddNodeV2Request *request, const struct graph_names *after,
	struct graph_node *node, Vgpu__CuGraphAddNodeV2Reply *reply)
{
	CUresult result;

	pthread_mutex_lock(&call->session->destroy_lock);
	result = keep_moved(call, request, after, node, reply);
	pthread_mutex_unlock(&call->session->destroy_lock);
	return result;
}

static CUresult add_conditional_node(struct call *call,
	const Vgpu__CuGraphAddNodeV2Request *request, const struct graph_names *after,
	const struct graph_node_description *given, Vgpu__CuGraphAddNodeV2Reply *reply)
{
	CUresult result;

	pthread_mutex_lock(&call->session->destroy_lock);
	result = keep_conditional(call, request, after, given, reply);
	pthread_mutex_unlock(&call->session->destroy_lock);
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
	if (result == CUDA_SUCCESS && given.kind == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return add_conditional_node(call, request, &after, &given, reply);
	if (result == CUDA_SUCCESS)
		result = graph_node_take(call, &given, &node);
	if (result == CUDA_SUCCESS &&
		node.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
		return add_moved_node(call, request, &after, &node, reply);
	if (result == CUDA_SUCCESS)
		result = add_with_edges(call, graph->driver, &after, &node, &added);
	else
		return result;
	if (result != CUDA_SUCCESS) {
		graph_node_drop(call, &node);
		return result;
	}
	if (node.kind == CU_GRAPH_NODE_TYPE_HOST)
		result = function_tie(call->session, graph->driver, node.host.userData);
	if (result == CUDA_SUCCESS)
		result = graph_keep_new(call, VGPU_HANDLE_GRAPH_NODE, added, graph,
			&reply->ph_graph_node);
	if (result != CUDA_SUCCESS)
		call->driver->cuGraphDestroyNode(added);
	return result;
}

/* A function that takes the place of another in a host node. */
static CUresult set_host(
	struct call *call, const struct object *object, const struct graph_node *node)
{
	struct session *session = call->session;
	CUgraph graph =
		object->parent ? ((const struct object *)object->parent)->driver : NULL;
	struct inside before;
	CUresult result;

	if (!call->driver->cuGraphHostNodeSetParams || !graph)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&session->destroy_lock);
	before = look_inside(call, object);
	result = function_tie(session, graph, node->host.userData);
	if (result == CUDA_SUCCESS) {
		result = call->driver->cuGraphHostNodeSetParams(
			object->driver, &node->host);
		function_untie(session, graph,
			result == CUDA_SUCCESS ? before.token : node->host.userData);
	}
	pthread_mutex_unlock(&session->destroy_lock);
	return result;
}

/* The driver's call for a node of a graph. */
static CUresult set(
	struct call *call, const struct object *object, const struct graph_node *node)
{
	CUgraphNode set = object->driver;

	switch (node->kind) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return ASK(cuGraphKernelNodeSetParams_v2, set, &node->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return ASK(cuGraphMemcpyNodeSetParams, set, &node->copy);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return ASK(cuGraphMemsetNodeSetParams, set, &node->fill);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return ASK(cuGraphEventRecordNodeSetEvent, set, node->event);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return ASK(cuGraphEventWaitNodeSetEvent, set, node->event);
	case CU_GRAPH_NODE_TYPE_HOST:
		return set_host(call, object, node);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return ASK(cuGraphBatchMemOpNodeSetParams, set, &node->batch);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult handle_cuGraphNodeSetParams(struct call *call,
	const Vgpu__CuGraphNodeSetParamsRequest *request,
	Vgpu__CuGraphNodeSetParamsReply *reply)
{
	const struct graph_node_description given = GRAPH_NODE_DESCRIPTION(request);
	struct object *object;
	struct graph_node node;
	CUresult result;

	result = object_find(call, VGPU_HANDLE_GRAPH_NODE, request->h_node, &object);
	if (result == CUDA_SUCCESS)
		result = graph_node_take(call, &given, &node);
	if (result != CUDA_SUCCESS)
		return result;
	result = set(call, object, &node);
	if (result != CUDA_SUCCESS)
		graph_node_drop(call, &node);
	return result;
}

/* The driver's call for a node of an executable graph. */
static CUresult set_in_exec(struct call *call, CUgraphExec exec, CUgraphNode set,
	const struct graph_node *node)
{
	switch (node->kind) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return ASK(cuGraphExecKernelNodeSetParams_v2, exec, set, &node->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return ASK(cuGraphExecMemcpyNodeSetParams, exec, set, &node->copy,
			node->context);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return ASK(cuGraphExecMemsetNodeSetParams, exec, set, &node->fill,
			node->context);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return ASK(cuGraphExecEventRecordNodeSetEvent, exec, set, node->event);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return ASK(cuGraphExecEventWaitNodeSetEvent, exec, set, node->event);
	case CU_GRAPH_NODE_TYPE_HOST:
		return ASK(cuGraphExecHostNodeSetParams, exec, set, &node->host);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return ASK(cuGraphExecChildGraphNodeSetParams, exec, set, node->child);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return ASK(cuGraphExecBatchMemOpNodeSetParams, exec, set, &node->batch);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult handle_cuGraphExecNodeSetParams(struct call *call,
	const Vgpu__CuGraphExecNodeSetParamsRequest *request,
	Vgpu__CuGraphExecNodeSetParamsReply *reply)
{
	const struct graph_node_description given = GRAPH_NODE_DESCRIPTION(request);
	struct graph_node node;
	struct object *exec;
	CUresult result;
	void *set;

	result = object_find(call, VGPU_HANDLE_GRAPH_EXEC, request->h_graph_exec, &exec);
	if (result == CUDA_SUCCESS)
		result = object_get(
			call, VGPU_HANDLE_GRAPH_NODE, request->h_node, false, &set);
	if (result == CUDA_SUCCESS)
		result = graph_node_take(call, &given, &node);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&call->session->destroy_lock);
	if (node.kind == CU_GRAPH_NODE_TYPE_HOST)
		result = graph_exec_make_room(call, (struct graph_exec *)exec);
	if (result == CUDA_SUCCESS)
		result = set_in_exec(call, exec->driver, set, &node);
	if (result != CUDA_SUCCESS)
		graph_node_drop(call, &node);
	else if (node.kind == CU_GRAPH_NODE_TYPE_HOST)
		graph_exec_set_function(
			call, (struct graph_exec *)exec, set, node.host.userData);
	pthread_mutex_unlock(&call->session->destroy_lock);
	return result;
}

CUresult handle_cuGraphDestroyNode(struct call *call,
	const Vgpu__CuGraphDestroyNodeRequest *request,
	Vgpu__CuGraphDestroyNodeReply *reply)
{
	struct session *session = call->session;
	const struct object *graph;
	struct object *object;
	struct inside inside;
	CUresult result;
	void *node;

	if (!call->driver->cuGraphDestroyNode)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&session->destroy_lock);
	result = object_find(call, VGPU_HANDLE_GRAPH_NODE, request->h_node, &object);
	if (result == CUDA_SUCCESS) {
		inside = look_inside(call, object);
		result = call->driver->cuGraphDestroyNode(object->driver);
	}
	if (result == CUDA_SUCCESS) {
		graph = object->parent;
		if (inside.child)
			graph_forget(session, inside.child);
		for (uint32_t i = 0; i < inside.n_bodies; i++)
			graph_forget(session, inside.bodies[i]);
		if (inside.token && graph)
			function_untie(session, graph->driver, inside.token);
		result =
			object_take(call, VGPU_HANDLE_GRAPH_NODE, request->h_node, &node);
	}
	pthread_mutex_unlock(&session->destroy_lock);
	return result;
}

CUresult handle_cuGraphChildGraphNodeGetGraph(struct call *call,
	const Vgpu__CuGraphChildGraphNodeGetGraphRequest *request,
	Vgpu__CuGraphChildGraphNodeGetGraphReply *reply)
{
	struct object *node;
	CUresult result;
	CUgraph child;

	if (!call->driver->cuGraphChildGraphNodeGetGraph)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* So that the graph is not destroyed before it has its handle. */
	pthread_mutex_lock(&call->session->destroy_lock);
	result = object_find(call, VGPU_HANDLE_GRAPH_NODE, request->h_node, &node);
	if (result == CUDA_SUCCESS)
		result =
			call->driver->cuGraphChildGraphNodeGetGraph(node->driver, &child);
	if (result == CUDA_SUCCESS)
		result = object_add_child(
			call, VGPU_HANDLE_GRAPH, child, node->parent, &reply->ph_graph);
	pthread_mutex_unlock(&call->session->destroy_lock);
	return result;
}
