/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on graphs
 */

#include <string.h>

#include "g-handlers.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/stream/graph.h"

CUresult handle_cuGraphCreate(struct call *call,
	const Vgpu__CuGraphCreateRequest *request, Vgpu__CuGraphCreateReply *reply)
{
	CUresult result;
	CUgraph graph;

	if (!call->driver->cuGraphCreate)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = call->driver->cuGraphCreate(&graph, request->flags);
	if (result != CUDA_SUCCESS)
		return result;
	result = graph_keep_new(call, VGPU_HANDLE_GRAPH, graph, NULL, &reply->ph_graph);
	if (result != CUDA_SUCCESS)
		call->driver->cuGraphDestroy(graph);
	return result;
}

/* A condition that gets no entry cannot be destroyed, but nothing names it. */
CUresult handle_cuGraphConditionalHandleCreate(struct call *call,
	const Vgpu__CuGraphConditionalHandleCreateRequest *request,
	Vgpu__CuGraphConditionalHandleCreateReply *reply)
{
	CUgraphConditionalHandle condition;
	struct object *graph;
	void *context;
	CUresult result;

	if (!call->driver->cuGraphConditionalHandleCreate)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_CONTEXT, request->ctx, true, &context);
	if (result != CUDA_SUCCESS)
		return result;
	/* Retaining it may have changed the current context. */
	context_left(call->runner);
	result = context_enter(call->session, call->runner, call->context);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&call->session->destroy_lock);
	result = object_find(call, VGPU_HANDLE_GRAPH, request->h_graph, &graph);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuGraphConditionalHandleCreate(&condition,
			graph->driver, context, request->default_launch_value,
			request->flags);
	if (result == CUDA_SUCCESS)
		result = graph_keep_condition(call, condition, graph);
	pthread_mutex_unlock(&call->session->destroy_lock);
	reply->p_handle_out = result == CUDA_SUCCESS ? condition : 0;
	return result;
}

CUresult handle_cuGraphClone(struct call *call, const Vgpu__CuGraphCloneRequest *request,
	Vgpu__CuGraphCloneReply *reply)
{
	CUresult result;
	CUgraph clone;
	void *graph;

	if (!call->driver->cuGraphClone)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(
		call, VGPU_HANDLE_GRAPH, request->original_graph, false, &graph);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuGraphClone(&clone, graph);
	if (result != CUDA_SUCCESS)
		return result;
	result = graph_keep_new(
		call, VGPU_HANDLE_GRAPH, clone, NULL, &reply->ph_graph_clone);
	if (result != CUDA_SUCCESS)
		call->driver->cuGraphDestroy(clone);
	return result;
}

CUresult handle_cuGraphDestroy(struct call *call,
	const Vgpu__CuGraphDestroyRequest *request, Vgpu__CuGraphDestroyReply *reply)
{
	struct object *graph;
	CUresult result;

	if (!call->driver->cuGraphDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&call->session->destroy_lock);
	result = object_find(call, VGPU_HANDLE_GRAPH, request->h_graph, &graph);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuGraphDestroy(graph->driver);
	/* If the driver did not destroy it, it keeps its handle. */
	if (result == CUDA_SUCCESS)
		graph_forget_handle(call->session, request->h_graph);
	pthread_mutex_unlock(&call->session->destroy_lock);
	return result;
}

CUresult handle_cuGraphNodeFindInClone(struct call *call,
	const Vgpu__CuGraphNodeFindInCloneRequest *request,
	Vgpu__CuGraphNodeFindInCloneReply *reply)
{
	struct object *clone;
	CUgraphNode node;
	CUresult result;
	void *original;

	if (!call->driver->cuGraphNodeFindInClone)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(
		call, VGPU_HANDLE_GRAPH_NODE, request->h_original_node, false, &original);
	if (result == CUDA_SUCCESS)
		result = object_find(
			call, VGPU_HANDLE_GRAPH, request->h_cloned_graph, &clone);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuGraphNodeFindInClone(
			&node, original, clone->driver);
	if (result != CUDA_SUCCESS)
		return result;
	return graph_keep_node(call, node, clone, &reply->ph_node);
}

/*
 * Edges
 */

struct edges {
	void *graph;
	struct graph_names from;
	struct graph_names to;
};

static CUresult take_edges(struct call *call, uint64_t graph,
	const ProtobufCBinaryData *from, const ProtobufCBinaryData *to,
	const ProtobufCBinaryData *data, struct edges *edges)
{
	CUresult result;

	result = object_get(call, VGPU_HANDLE_GRAPH, graph, false, &edges->graph);
	if (result == CUDA_SUCCESS)
		result = graph_names_take(call, from, data, &edges->from);
	if (result == CUDA_SUCCESS)
		result = graph_names_take(call, to, NULL, &edges->to);
	if (result == CUDA_SUCCESS && edges->from.n != edges->to.n)
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

typedef CUresult (*change_edges)(CUgraph graph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edges, size_t n);
typedef CUresult (*change_plain_edges)(
	CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n);

/* Drivers before CUDA 12.3 have no edge data. */
static CUresult call_driver(
	const struct edges *edges, change_edges change, change_plain_edges change_plain)
{
	if (change)
		return change(edges->graph, edges->from.nodes, edges->to.nodes,
			edges->from.edges, edges->from.n);
	if (!change_plain || edges->from.edges)
		return CUDA_ERROR_NOT_SUPPORTED;
	return change_plain(
		edges->graph, edges->from.nodes, edges->to.nodes, edges->from.n);
}

CUresult handle_cuGraphAddDependencies_v2(struct call *call,
	const Vgpu__CuGraphAddDependenciesV2Request *request,
	Vgpu__CuGraphAddDependenciesV2Reply *reply)
{
	struct edges edges;
	CUresult result;

	result = take_edges(call, request->h_graph, &request->from_list,
		&request->to_list, &request->edges, &edges);
	if (result != CUDA_SUCCESS)
		return result;
	return call_driver(&edges, call->driver->cuGraphAddDependencies_v2,
		call->driver->cuGraphAddDependencies);
}

CUresult handle_cuGraphRemoveDependencies_v2(struct call *call,
	const Vgpu__CuGraphRemoveDependenciesV2Request *request,
	Vgpu__CuGraphRemoveDependenciesV2Reply *reply)
{
	struct edges edges;
	CUresult result;

	result = take_edges(call, request->h_graph, &request->from_list,
		&request->to_list, &request->edges, &edges);
	if (result != CUDA_SUCCESS)
		return result;
	return call_driver(&edges, call->driver->cuGraphRemoveDependencies_v2,
		call->driver->cuGraphRemoveDependencies);
}

/*
 * Lists
 */

/* Handles of the nodes of one page, as bytes. */
static CUresult tell_nodes(struct call *call, CUgraphNode *nodes, size_t n,
	const struct object *graph, ProtobufCBinaryData *bytes)
{
	uint64_t *handles = call_alloc(call, VGPU_GRAPH_PAGE * sizeof(*handles));
	CUresult result = CUDA_SUCCESS;

	if (!handles)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++)
		result = graph_keep_node(call, nodes[i], graph, &handles[i]);
	bytes->data = (uint8_t *)handles;
	bytes->len = n * sizeof(*handles);
	return result;
}

static CUresult tell_page(struct call *call, const struct graph_list *list,
	uint64_t first, const struct object *graph, Vgpu__VgpuGraphListReply *reply)
{
	size_t n = first < list->n ? list->n - first : 0;
	CUresult result;

	if (n > VGPU_GRAPH_PAGE)
		n = VGPU_GRAPH_PAGE;
	reply->n_total = list->n;
	if (!n)
		return CUDA_SUCCESS;
	result = tell_nodes(call, list->nodes + first, n, graph, &reply->nodes);
	if (result == CUDA_SUCCESS && list->others)
		result = tell_nodes(call, list->others + first, n, graph, &reply->others);
	if (result != CUDA_SUCCESS || !list->edges)
		return result;
	reply->edges.len = n * sizeof(*list->edges);
	reply->edges.data = call_alloc(call, reply->edges.len);
	if (!reply->edges.data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(reply->edges.data, list->edges + first, reply->edges.len);
	return CUDA_SUCCESS;
}

CUresult handle_vgpuGraphList(struct call *call,
	const Vgpu__VgpuGraphListRequest *request, Vgpu__VgpuGraphListReply *reply)
{
	bool is_of_node = request->list == VGPU_GRAPH_DEPENDENCIES ||
			  request->list == VGPU_GRAPH_DEPENDENTS;
	const struct object *graph;
	struct graph_list list;
	struct object *object;
	CUresult result;

	if (request->list < 0 || request->list >= _VGPU_GRAPH_LIST_N)
		return CUDA_ERROR_INVALID_VALUE;
	if (is_of_node)
		result =
			object_find(call, VGPU_HANDLE_GRAPH_NODE, request->node, &object);
	else
		result = object_find(call, VGPU_HANDLE_GRAPH, request->graph, &object);
	if (result != CUDA_SUCCESS)
		return result;
	graph = is_of_node ? object->parent : object;
	result = graph_list_take(call, request->list, object->driver, &list);
	if (result != CUDA_SUCCESS)
		return result;
	result = tell_page(call, &list, request->first, graph, reply);
	graph_list_free(call->session, &list);
	return result;
}
