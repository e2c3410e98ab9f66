/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of pageable memory in graphs
 */

#include <stdlib.h>
#include <string.h>

#include "entry/graph-inside.h"
#include "entry/graph-memory.h"
#include "entry/graph-node.h"
#include "entry/graph-pageable.h"
#include "entry/graph-shadow.h"
#include "g-remote.h"
#include "process/call.h"
#include "process/callback.h"

/* Belongs to the functions that fill and drain. */
struct pageable {
	uint32_t n_refs;    /* atomic */
	CUDA_MEMCPY3D copy; /* the program's */
	struct shim_shadow to, from;
};

static void fill(void *data)
{
	struct pageable *pageable = data;

	if (pageable->to.pinned)
		shim_shadow_fill(&pageable->to);
	if (pageable->from.pinned)
		shim_shadow_fill(&pageable->from);
}

static void drain(void *data)
{
	struct pageable *pageable = data;

	if (pageable->to.pinned)
		shim_shadow_drain(&pageable->to);
}

/* Drops one reference. */
static void release(void *data)
{
	struct pageable *pageable = data;

	if (__atomic_sub_fetch(&pageable->n_refs, 1, __ATOMIC_ACQ_REL))
		return;
	shim_shadow_deinit(&pageable->to);
	shim_shadow_deinit(&pageable->from);
	free(pageable);
}

/* A shadow for a side, if that is pageable. */
static CUresult add_shadow(struct shim_shadow *shadow, const CUDA_MEMCPY3D *copy,
	const struct shim_graph_side *side, enum shim_shadow_use use)
{
	struct shim_rows rows;
	CUresult result;

	if (!shim_graph_side_is_pageable(side))
		return CUDA_SUCCESS;
	result = shim_graph_side_locate(side, copy, &rows);
	return result == CUDA_SUCCESS ? shim_shadow_init(shadow, &rows, use) : result;
}

/* With one reference. */
static CUresult pageable_new(const CUDA_MEMCPY3D *copy, struct pageable **pageablep)
{
	const struct shim_graph_side to = shim_graph_side_to(copy),
				     from = shim_graph_side_from(copy);
	struct pageable *pageable = calloc(1, sizeof(*pageable));
	CUresult result;

	if (!pageable)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pageable->n_refs = 1;
	pageable->copy = *copy;
	result = add_shadow(&pageable->to, copy, &to, SHIM_SHADOW_WHOLE);
	if (result == CUDA_SUCCESS)
		result = add_shadow(&pageable->from, copy, &from, SHIM_SHADOW_READ);
	if (result == CUDA_SUCCESS)
		*pageablep = pageable;
	else
		release(pageable);
	return result;
}

/*
 * The child graph
 */

/* The nodes of the child, in their order. The last one is only there if the memory that
 * is written may be the program's. */
#define NODES_MAX 3

struct child {
	CUgraph graph;
	CUgraphNode nodes[NODES_MAX]; /* fill, copy, drain */
	size_t n;
};

static bool has_drain(const CUDA_MEMCPY3D *copy)
{
	const struct shim_graph_side to = shim_graph_side_to(copy);

	return shim_graph_side_may_be_host(&to);
}

static CUresult describe_function(
	struct shim_node *node, CUhostFn function, struct pageable *pageable)
{
	const struct shim_callback callback = {
		.kind = SHIM_CALLBACK_OF_GRAPH,
		.host_function = function,
		.data = pageable,
		.released = release,
	};
	CUresult result;

	__atomic_fetch_add(&pageable->n_refs, 1, __ATOMIC_RELAXED);
	result = shim_graph_node_function(node, &callback);
	if (result != CUDA_SUCCESS)
		release(pageable);
	return result;
}

/* The device's copy, with pinned memory in the place of the program's. */
static CUresult describe_copy(
	struct shim_node *node, const struct pageable *pageable, CUcontext context)
{
	CUDA_MEMCPY3D copy = pageable->copy;

	if (pageable->to.pinned)
		shim_graph_side_replace_to(
			&copy, pageable->to.pinned, copy.WidthInBytes, copy.Height);
	if (pageable->from.pinned)
		shim_graph_side_replace_from(
			&copy, pageable->from.pinned, copy.WidthInBytes, copy.Height);
	return shim_graph_node_copy(node, &copy, context);
}

static CUresult describe(struct shim_node *node, struct pageable *pageable,
	CUcontext context, size_t which)
{
	if (which == 1)
		return describe_copy(node, pageable, context);
	return describe_function(node, which ? drain : fill, pageable);
}

/* Adds a node behind the one before. The host drops the reference of a function that was
 * not added. */
static CUresult add_next(
	struct child *child, struct pageable *pageable, CUcontext context)
{
	const struct shim_edges edges = {
		.nodes = child->n ? &child->nodes[child->n - 1] : NULL,
		.n = child->n ? 1 : 0,
	};
	struct shim_node node;
	CUresult result;

	result = describe(&node, pageable, context, child->n);
	if (result != CUDA_SUCCESS)
		return result;
	result =
		shim_graph_node_add(&child->nodes[child->n], child->graph, &edges, &node);
	if (result != CUDA_SUCCESS && node.kind == CU_GRAPH_NODE_TYPE_HOST)
		release(pageable);
	child->n += result == CUDA_SUCCESS;
	return result;
}

/* Adds all nodes to an empty graph. */
static CUresult build(CUgraph graph, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	const size_t n = has_drain(copy) ? NODES_MAX : NODES_MAX - 1;
	struct child child = { .graph = graph };
	struct pageable *pageable;
	CUresult result;

	result = pageable_new(copy, &pageable);
	if (result != CUDA_SUCCESS)
		return result;
	while (child.n < n && result == CUDA_SUCCESS)
		result = add_next(&child, pageable, context);
	release(pageable);
	return result;
}

CUresult shim_graph_pageable_new(
	const CUDA_MEMCPY3D *copy, CUcontext context, CUgraph *childp)
{
	CUgraph child;
	CUresult result;

	result = shim_cuGraphCreate(&child, 0);
	if (result != CUDA_SUCCESS)
		return result;
	result = build(child, copy, context);
	if (result == CUDA_SUCCESS)
		*childp = child;
	else
		shim_cuGraphDestroy(child);
	return result;
}

/*
 * Nodes of the program
 */

/* Puts a node in its place. Return: whether it is one of such a copy. */
static bool sort_node(struct child *child, CUgraphNode node, CUDA_MEMCPY3D *copy)
{
	struct shim_callback callback;
	size_t place = 1;

	if (shim_graph_node_get_function(node, &callback) == CUDA_SUCCESS) {
		if (callback.released != release)
			return false;
		*copy = ((const struct pageable *)callback.data)->copy;
		place = callback.host_function == drain ? 2 : 0;
	}
	if (child->nodes[place])
		return false;
	child->nodes[place] = node;
	return true;
}

/* Finds the nodes of a node's child. Return: false unless it is such a copy. */
static bool look_inside(CUgraphNode handle, struct child *child, CUDA_MEMCPY3D *copy)
{
	CUgraphNode nodes[NODES_MAX + 1];
	size_t n = NODES_MAX + 1;
	CUgraphNodeType type;

	*child = (struct child){};
	if (shim_remote_cuGraphNodeGetType(handle, &type) != CUDA_SUCCESS ||
		type != CU_GRAPH_NODE_TYPE_GRAPH ||
		shim_remote_cuGraphChildGraphNodeGetGraph(handle, &child->graph) !=
			CUDA_SUCCESS ||
		shim_cuGraphGetNodes(child->graph, nodes, &n) != CUDA_SUCCESS ||
		n < NODES_MAX - 1 || n > NODES_MAX)
		return false;
	for (; child->n < n; child->n++)
		if (!sort_node(child, nodes[child->n], copy))
			return false;
	return child->nodes[0] && child->nodes[1];
}

bool shim_graph_pageable_find(CUgraphNode handle, CUDA_MEMCPY3D *copy)
{
	struct child child;

	return look_inside(handle, &child, copy);
}

bool shim_graph_pageable_find_copy(CUgraphNode handle, CUgraphNode *innerp)
{
	CUDA_MEMCPY3D copy;
	struct child child;

	if (!look_inside(handle, &child, &copy))
		return false;
	*innerp = child.nodes[1];
	return true;
}

/* The nodes stay, so that executable graphs still know them. */
static CUresult change(
	const struct child *child, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	static const size_t order[NODES_MAX] = { 1, 0, 2 };
	struct pageable *pageable;
	struct shim_node node;
	CUresult result;

	result = pageable_new(copy, &pageable);
	if (result != CUDA_SUCCESS)
		return result;
	/* The copy first: what cannot be made changes nothing. */
	for (size_t i = 0; i < child->n && result == CUDA_SUCCESS; i++) {
		result = describe(&node, pageable, context, order[i]);
		if (result != CUDA_SUCCESS)
			break;
		result = shim_graph_node_set(child->nodes[order[i]], &node);
		if (result != CUDA_SUCCESS && order[i] != 1)
			release(pageable);
	}
	release(pageable);
	return result;
}

/* Return: whether the nodes of one copy can do the other. */
static bool is_alike(const CUDA_MEMCPY3D *one, const CUDA_MEMCPY3D *other)
{
	return has_drain(one) == has_drain(other);
}

CUresult shim_graph_pageable_set(
	CUgraphNode handle, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	CUDA_MEMCPY3D before;
	struct child child;
	CUresult result;

	if (!look_inside(handle, &child, &before))
		return CUDA_ERROR_INVALID_VALUE;
	if (is_alike(copy, &before))
		return change(&child, copy, context);
	/* What cannot be made is noticed before anything is changed. */
	for (size_t i = 0; i < child.n; i++) {
		result = shim_cuGraphDestroyNode(child.nodes[i]);
		if (result != CUDA_SUCCESS)
			return result;
	}
	return build(child.graph, copy, context);
}

CUresult shim_cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
	CUDA_MEMCPY3D copy;
	CUresult result;

	result = shim_remote_cuGraphNodeGetType(hNode, type);
	if (result == CUDA_SUCCESS && *type == CU_GRAPH_NODE_TYPE_EMPTY)
		shim_graph_memory_type(hNode, type);
	if (result == CUDA_SUCCESS && *type == CU_GRAPH_NODE_TYPE_GRAPH &&
		shim_graph_pageable_find(hNode, &copy))
		*type = CU_GRAPH_NODE_TYPE_MEMCPY;
	return result;
}

CUresult shim_cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
	CUDA_MEMCPY3D copy;
	CUresult result;

	if (shim_graph_pageable_find(hNode, &copy))
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_remote_cuGraphChildGraphNodeGetGraph(hNode, phGraph);
	return result == CUDA_SUCCESS && !shim_graph_inside_note(*phGraph)
		       ? CUDA_ERROR_OUT_OF_MEMORY
		       : result;
}
