/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: the worker's entries
 */

#include <stdlib.h>
#include <string.h>

#include "worker/base/call.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/stream/graph.h"

CUresult graph_keep(struct call *call, CUgraph graph, uint64_t *handlep)
{
	return object_add(call, VGPU_HANDLE_GRAPH, graph, handlep);
}

/* Removes the entry of a destroyed object with the same driver pointer. */
static void drop_stale(struct session *session, enum vgpu_handle_kind kind, void *driver)
{
	struct object_table *table = &session->objects[kind];
	struct object stale;

	if (!object_table_find_driver(table, driver, NULL, &stale, sizeof(stale)))
		return;
	if (kind == VGPU_HANDLE_GRAPH)
		graph_forget(session, driver);
	else
		object_table_remove(table, object_handle(table, &stale), NULL);
}

CUresult graph_keep_new(struct call *call, enum vgpu_handle_kind kind, void *driver,
	const struct object *parent, uint64_t *handlep)
{
	drop_stale(call->session, kind, driver);
	return object_add_child(call, kind, driver, parent, handlep);
}

CUresult graph_keep_node(struct call *call, CUgraphNode node, const struct object *graph,
	uint64_t *handlep)
{
	return object_add_child(call, VGPU_HANDLE_GRAPH_NODE, node, graph, handlep);
}

CUresult graph_keep_conditional(struct call *call, CUgraphNode node,
	const CUDA_CONDITIONAL_NODE_PARAMS *params, const struct object *graph,
	uint64_t *handlep, ProtobufCBinaryData *bodies)
{
	const struct graph_entry like = {
		.bodies = params->phGraph_out,
		.n_bodies = params->size,
	};
	uint64_t *handles = call_alloc(call, params->size * sizeof(*handles));
	CUresult result;
	uint32_t n = 0;

	if (!handles || !params->phGraph_out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	drop_stale(call->session, VGPU_HANDLE_GRAPH_NODE, node);
	result = object_add_like(
		call, VGPU_HANDLE_GRAPH_NODE, node, graph, &like.object, handlep);
	for (; n < params->size && result == CUDA_SUCCESS; n++)
		result = graph_keep_new(call, VGPU_HANDLE_GRAPH, params->phGraph_out[n],
			graph, &handles[n]);
	if (result != CUDA_SUCCESS) {
		while (n--)
			graph_forget(call->session, params->phGraph_out[n]);
		drop_stale(call->session, VGPU_HANDLE_GRAPH_NODE, node);
		return result;
	}
	bodies->data = (uint8_t *)handles;
	bodies->len = n * sizeof(*handles);
	return CUDA_SUCCESS;
}

bool graph_is_around(const struct object *graph, const struct object *other)
{
	/* Entries that are reused meanwhile could form a cycle. */
	for (uint32_t depth = 0; other && depth <= GRAPH_DEPTH_MAX; depth++) {
		if (other == graph)
			return true;
		other = other->parent;
	}
	return false;
}

/*
 * Conditions
 */

static void *condition_key(uint64_t value)
{
	return (void *)(uintptr_t)value;
}

CUresult graph_keep_condition(
	struct call *call, uint64_t value, const struct object *graph)
{
	uint64_t handle;

	return graph_keep_new(
		call, VGPU_HANDLE_CONDITION, condition_key(value), graph, &handle);
}

bool graph_has_condition(struct call *call, uint64_t value, const struct object *graph)
{
	struct object_table *table = &call->session->objects[VGPU_HANDLE_CONDITION];
	struct object found;

	if (!object_table_find_driver(
		    table, condition_key(value), NULL, &found, sizeof(found)))
		return false;
	return graph_is_around(found.parent, graph);
}

static bool lists(const struct graph_list *list, CUgraphNode node)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->nodes[i] == node)
			return true;
	return false;
}

CUresult graph_find_node(struct call *call, CUgraphNode node, const struct object *graph,
	uint64_t *handlep)
{
	struct object_table *table = &call->session->objects[VGPU_HANDLE_GRAPH_NODE];
	struct graph_list list;
	struct object found;
	CUresult result;
	bool is_listed;

	*handlep = 0;
	if (!node)
		return CUDA_SUCCESS;
	if (object_table_find_driver(table, node, NULL, &found, sizeof(found))) {
		*handlep = object_handle(table, &found);
		return CUDA_SUCCESS;
	}
	result = graph_list_take(call, VGPU_GRAPH_NODES, graph->driver, &list);
	if (result != CUDA_SUCCESS)
		return result;
	is_listed = lists(&list, node);
	graph_list_free(call->session, &list);
	return is_listed ? graph_keep_node(call, node, graph, handlep) : CUDA_SUCCESS;
}

void graph_forget_handle(struct session *session, uint64_t handle)
{
	struct object_table *table = &session->objects[VGPU_HANDLE_GRAPH];
	const struct object *graph = object_table_find(table, handle);
	uint64_t child;

	if (!graph)
		return;
	while (object_table_find_owned(table, graph, &child))
		graph_forget_handle(session, child);
	object_table_remove_owned(&session->objects[VGPU_HANDLE_GRAPH_NODE], graph);
	object_table_remove_owned(&session->objects[VGPU_HANDLE_CONDITION], graph);
	object_table_remove(table, handle, NULL);
}

void graph_forget(struct session *session, CUgraph graph)
{
	struct object_table *table = &session->objects[VGPU_HANDLE_GRAPH];
	struct object copy;

	if (object_table_find_driver(table, graph, NULL, &copy, sizeof(copy)))
		graph_forget_handle(session, object_handle(table, &copy));
}

/* Drivers before CUDA 12.3 have no edge data. */
static CUresult ask_edges(struct call *call, CUgraph graph, struct graph_list *list)
{
	const struct vgpu_driver *driver = call->driver;

	if (driver->cuGraphGetEdges_v2)
		return driver->cuGraphGetEdges_v2(
			graph, list->nodes, list->others, list->edges, &list->n);
	if (!driver->cuGraphGetEdges)
		return CUDA_ERROR_NOT_SUPPORTED;
	return driver->cuGraphGetEdges(graph, list->nodes, list->others, &list->n);
}

static CUresult ask_dependencies(
	struct call *call, CUgraphNode node, struct graph_list *list)
{
	const struct vgpu_driver *driver = call->driver;

	if (driver->cuGraphNodeGetDependencies_v2)
		return driver->cuGraphNodeGetDependencies_v2(
			node, list->nodes, list->edges, &list->n);
	if (!driver->cuGraphNodeGetDependencies)
		return CUDA_ERROR_NOT_SUPPORTED;
	return driver->cuGraphNodeGetDependencies(node, list->nodes, &list->n);
}

static CUresult ask_dependents(
	struct call *call, CUgraphNode node, struct graph_list *list)
{
	const struct vgpu_driver *driver = call->driver;

	if (driver->cuGraphNodeGetDependentNodes_v2)
		return driver->cuGraphNodeGetDependentNodes_v2(
			node, list->nodes, list->edges, &list->n);
	if (!driver->cuGraphNodeGetDependentNodes)
		return CUDA_ERROR_NOT_SUPPORTED;
	return driver->cuGraphNodeGetDependentNodes(node, list->nodes, &list->n);
}

/* Without arrays, the driver only counts. */
static CUresult ask(struct call *call, enum vgpu_graph_list what, void *driver,
	struct graph_list *list)
{
	switch (what) {
	case VGPU_GRAPH_NODES:
		if (!call->driver->cuGraphGetNodes)
			return CUDA_ERROR_NOT_SUPPORTED;
		return call->driver->cuGraphGetNodes(driver, list->nodes, &list->n);
	case VGPU_GRAPH_ROOTS:
		if (!call->driver->cuGraphGetRootNodes)
			return CUDA_ERROR_NOT_SUPPORTED;
		return call->driver->cuGraphGetRootNodes(driver, list->nodes, &list->n);
	case VGPU_GRAPH_EDGES:
		return ask_edges(call, driver, list);
	case VGPU_GRAPH_DEPENDENCIES:
		return ask_dependencies(call, driver, list);
	case VGPU_GRAPH_DEPENDENTS:
		return ask_dependents(call, driver, list);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Allocates and charges memory for the counted entries. Return: false without memory. */
static bool make_room(
	struct session *session, enum vgpu_graph_list what, struct graph_list *list)
{
	bool has_edges = what != VGPU_GRAPH_NODES && what != VGPU_GRAPH_ROOTS;
	size_t n_ends = what == VGPU_GRAPH_EDGES ? 2 : 1, n = list->n;
	size_t entry_size =
		n_ends * sizeof(*list->nodes) + (has_edges ? sizeof(*list->edges) : 0);

	if (n > GRAPH_LISTS_MAX / entry_size)
		return false;
	list->size = n * entry_size;
	if (__atomic_add_fetch(&session->list_bytes, list->size, __ATOMIC_RELAXED) <=
		GRAPH_LISTS_MAX)
		list->memory = calloc(n, entry_size);
	if (!list->memory) {
		graph_list_free(session, list);
		return false;
	}
	list->nodes = list->memory;
	if (n_ends > 1)
		list->others = list->nodes + n;
	if (has_edges)
		list->edges = (CUgraphEdgeData *)(list->nodes + n_ends * n);
	return true;
}

CUresult graph_list_take(struct call *call, enum vgpu_graph_list what, void *driver,
	struct graph_list *taken)
{
	CUresult result;
	size_t n;

	*taken = (struct graph_list){};
	result = ask(call, what, driver, taken);
	if (result != CUDA_SUCCESS || !taken->n)
		return result;
	n = taken->n;
	if (!make_room(call->session, what, taken))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = ask(call, what, driver, taken);
	/* Another thread may have added entries meanwhile. */
	if (taken->n > n)
		taken->n = n;
	if (result != CUDA_SUCCESS)
		graph_list_free(call->session, taken);
	return result;
}

void graph_list_free(struct session *session, struct graph_list *taken)
{
	free(taken->memory);
	__atomic_fetch_sub(&session->list_bytes, taken->size, __ATOMIC_RELAXED);
	*taken = (struct graph_list){};
}

static CUresult count(struct call *call, CUgraph graph, uint32_t depth, uint64_t *np);

static CUresult count_bodies(
	struct call *call, CUgraphNode node, uint32_t depth, uint64_t *np)
{
	struct object_table *table = &call->session->objects[VGPU_HANDLE_GRAPH_NODE];
	struct graph_entry entry;
	CUresult result = CUDA_SUCCESS;

	if (!object_table_find_driver(table, node, NULL, &entry.object, sizeof(entry)))
		return CUDA_SUCCESS;
	for (uint32_t i = 0; i < entry.n_bodies && result == CUDA_SUCCESS; i++)
		result = count(call, entry.bodies[i], depth + 1, np);
	return result;
}

/* Adds the nodes inside a node. */
static CUresult count_inside(
	struct call *call, CUgraphNode node, uint32_t depth, uint64_t *np)
{
	CUgraphNodeType type;
	CUgraph child;
	CUresult result;

	result = call->driver->cuGraphNodeGetType(node, &type);
	if (result == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return count_bodies(call, node, depth, np);
	if (result != CUDA_SUCCESS || type != CU_GRAPH_NODE_TYPE_GRAPH)
		return result;
	result = call->driver->cuGraphChildGraphNodeGetGraph(node, &child);
	return result == CUDA_SUCCESS ? count(call, child, depth + 1, np) : result;
}

static CUresult count(struct call *call, CUgraph graph, uint32_t depth, uint64_t *np)
{
	struct graph_list list = {};
	CUresult result;

	if (depth > GRAPH_DEPTH_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = graph_list_take(call, VGPU_GRAPH_NODES, graph, &list);
	if (result != CUDA_SUCCESS)
		return result;
	*np += list.n;
	for (size_t i = 0; i < list.n && result == CUDA_SUCCESS; i++)
		result = count_inside(call, list.nodes[i], depth, np);
	graph_list_free(call->session, &list);
	return result;
}

CUresult graph_count(struct call *call, CUgraph graph, uint64_t *np)
{
	struct graph_list list = {};
	CUresult result;

	*np = 0;
	if (call->driver->cuGraphNodeGetType &&
		call->driver->cuGraphChildGraphNodeGetGraph)
		return count(call, graph, 0, np);
	result = ask(call, VGPU_GRAPH_NODES, graph, &list);
	*np = list.n;
	return result;
}

static CUresult take_edges(
	struct call *call, const ProtobufCBinaryData *bytes, struct graph_names *names)
{
	if (!bytes->len)
		return CUDA_SUCCESS;
	if (bytes->len != names->n * sizeof(*names->edges))
		return CUDA_ERROR_INVALID_VALUE;
	names->edges = call_alloc(call, bytes->len);
	if (!names->edges)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(names->edges, bytes->data, bytes->len);
	return CUDA_SUCCESS;
}

CUresult graph_names_take(struct call *call, const ProtobufCBinaryData *handles,
	const ProtobufCBinaryData *edges, struct graph_names *names)
{
	CUresult result = CUDA_SUCCESS;
	uint64_t handle;
	void *node;

	*names = (struct graph_names){ .n = handles->len / sizeof(handle) };
	if (handles->len % sizeof(handle) || names->n > VGPU_GRAPH_LIST_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	names->nodes = call_alloc(call, (names->n + 1) * sizeof(*names->nodes));
	if (!names->nodes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < names->n && result == CUDA_SUCCESS; i++) {
		memcpy(&handle, handles->data + i * sizeof(handle), sizeof(handle));
		result = object_get(call, VGPU_HANDLE_GRAPH_NODE, handle, false, &node);
		names->nodes[i] = node;
	}
	return result == CUDA_SUCCESS && edges ? take_edges(call, edges, names) : result;
}
