/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of pageable memory in graphs
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/checked.h"

#include "entry/graph-inside.h"
#include "entry/graph-memory.h"
#include "entry/graph-node.h"
#include "entry/graph-pageable.h"
#include "g-remote.h"
#include "memory/arena.h"
#include "memory/copy.h"
#include "process/call.h"
#include "process/callback.h"

/* One side in memory that a processor reaches: rows, and how far they are apart. */
struct place {
	uint8_t *memory; /* the first row */
	uint64_t pitch;
	uint64_t layer; /* bytes from layer to layer */
};

/* Belongs to the function that moves it. */
struct pageable {
	CUDA_MEMCPY3D copy; /* the program's */
	uint8_t *pinned;    /* rows and layers without gaps, or NULL */
	struct place to, from;
};

static uint8_t *row_of(const struct place *place, uint64_t y, uint64_t z)
{
	return place->memory + z * place->layer + y * place->pitch;
}

static void move(void *data)
{
	const struct pageable *pageable = data;
	const CUDA_MEMCPY3D *copy = &pageable->copy;

	for (uint64_t z = 0; z < copy->Depth; z++)
		for (uint64_t y = 0; y < copy->Height; y++)
			memmove(row_of(&pageable->to, y, z),
				row_of(&pageable->from, y, z), copy->WidthInBytes);
}

/* The device reaches both sides. */
static void skip(void *data)
{
}

static void release(void *data)
{
	struct pageable *pageable = data;

	if (pageable->pinned)
		shim_arena_free(pageable->pinned);
	free(pageable);
}

/* One side as the structure of the API describes it. */
struct side {
	CUmemorytype type;
	uint64_t address;
	uint64_t x, y, z, pitch, rows;
};

#define SIDE(_copy, _prefix)                                                             \
	{                                                                                \
		.type = (_copy)->_prefix##MemoryType,                                    \
		.address = (_copy)->_prefix##MemoryType == CU_MEMORYTYPE_HOST            \
				   ? shim_address((_copy)->_prefix##Host)                \
				   : (_copy)->_prefix##Device,                           \
		.x = (_copy)->_prefix##XInBytes, .y = (_copy)->_prefix##Y,               \
		.z = (_copy)->_prefix##Z, .pitch = (_copy)->_prefix##Pitch,              \
		.rows = (_copy)->_prefix##Height,                                        \
	}

static bool is_pageable(const struct side *side)
{
	return (side->type == CU_MEMORYTYPE_HOST ||
		       side->type == CU_MEMORYTYPE_UNIFIED) &&
	       shim_copy_place(side->address) == SHIM_PLACE_PAGEABLE;
}

/* Return: whether a processor reaches it, too. */
static bool is_of_host(const struct side *side)
{
	return is_pageable(side) ||
	       (side->type == CU_MEMORYTYPE_HOST &&
		       shim_copy_place(side->address) == SHIM_PLACE_ARENA);
}

/* Return: false if a row does not fit its pitch, or sizes overflow. */
static bool locate(
	const CUDA_MEMCPY3D *copy, const struct side *side, struct place *place)
{
	uint64_t rows = side->rows ? side->rows : copy->Height, offset, row;

	place->pitch = side->pitch ? side->pitch : copy->WidthInBytes;
	if (copy->WidthInBytes > place->pitch || copy->Height > rows ||
		!vgpu_mul_u64(place->pitch, rows, &place->layer) ||
		!vgpu_mul_u64(side->z, place->layer, &offset) ||
		!vgpu_mul_u64(side->y, place->pitch, &row) ||
		!vgpu_add_u64(offset, row, &offset) ||
		!vgpu_add_u64(offset, side->x, &offset) ||
		!vgpu_add_u64(side->address, offset, &offset))
		return false;
	place->memory = shim_pointer(offset);
	return true;
}

/* Pinned memory for the device's part of the copy. */
static CUresult make_pinned(struct pageable *pageable, struct place *place)
{
	const CUDA_MEMCPY3D *copy = &pageable->copy;
	uint64_t size;

	if (!vgpu_mul_u64(copy->WidthInBytes, copy->Height, &size) ||
		!vgpu_mul_u64(size, copy->Depth, &size))
		return CUDA_ERROR_INVALID_VALUE;
	pageable->pinned = shim_arena_alloc(size);
	*place = (struct place){
		.memory = pageable->pinned,
		.pitch = copy->WidthInBytes,
		.layer = copy->WidthInBytes * copy->Height,
	};
	return pageable->pinned ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Locates the sides that are the host's; the other one is pinned memory. */
static CUresult place_sides(
	struct pageable *pageable, const struct side *to, const struct side *from)
{
	const CUDA_MEMCPY3D *copy = &pageable->copy;

	if (!copy->WidthInBytes || !copy->Height || !copy->Depth ||
		(is_of_host(to) && !locate(copy, to, &pageable->to)) ||
		(is_of_host(from) && !locate(copy, from, &pageable->from)))
		return CUDA_ERROR_INVALID_VALUE;
	if (is_pageable(from) && !is_of_host(to))
		return make_pinned(pageable, &pageable->to);
	if (is_pageable(to) && !is_of_host(from))
		return make_pinned(pageable, &pageable->from);
	return CUDA_SUCCESS;
}

static CUresult pageable_new(const CUDA_MEMCPY3D *copy, const struct side *to,
	const struct side *from, struct pageable **pageablep)
{
	struct pageable *pageable = calloc(1, sizeof(*pageable));
	CUresult result;

	if (!pageable)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pageable->copy = *copy;
	result = place_sides(pageable, to, from);
	if (result == CUDA_SUCCESS)
		*pageablep = pageable;
	else
		release(pageable);
	return result;
}

/*
 * The child graph
 */

/* Adds a node behind another one, or NULL. */
static CUresult add(CUgraph graph, const CUgraphNode *after, const struct shim_node *node,
	CUgraphNode *addedp)
{
	const struct shim_edges edges = { .nodes = after, .n = after ? 1 : 0 };

	return shim_graph_node_add(addedp, graph, &edges, node);
}

static CUresult add_function(CUgraph graph, const CUgraphNode *after, CUhostFn function,
	struct pageable *pageable, CUgraphNode *addedp)
{
	const struct shim_callback callback = {
		.kind = SHIM_CALLBACK_OF_GRAPH,
		.host_function = function,
		.data = pageable,
		.released = release,
	};
	struct shim_node node;
	CUresult result;

	result = shim_graph_node_function(&node, &callback);
	if (result == CUDA_SUCCESS)
		result = add(graph, after, &node, addedp);
	if (result != CUDA_SUCCESS)
		release(pageable);
	return result;
}

static CUresult add_copy(CUgraph graph, const CUgraphNode *after,
	const CUDA_MEMCPY3D *copy, CUcontext context, CUgraphNode *addedp)
{
	struct shim_node node;
	CUresult result;

	result = shim_graph_node_copy(&node, copy, context);
	return result == CUDA_SUCCESS ? add(graph, after, &node, addedp) : result;
}

/* The device's copy, with pinned memory in the place of one side. */
#define SET_PINNED(_copy, _prefix, _pageable)                                            \
	do {                                                                             \
		(_copy)->_prefix##MemoryType = CU_MEMORYTYPE_HOST;                       \
		(_copy)->_prefix##Host = (_pageable)->pinned;                            \
		(_copy)->_prefix##Device = 0;                                            \
		(_copy)->_prefix##XInBytes = 0;                                          \
		(_copy)->_prefix##Y = 0;                                                 \
		(_copy)->_prefix##Z = 0;                                                 \
		(_copy)->_prefix##Pitch = (_copy)->WidthInBytes;                         \
		(_copy)->_prefix##Height = (_copy)->Height;                              \
	} while (0)

/* What the function and the device do, which of them first. */
struct plan {
	CUhostFn function;
	bool is_by_host; /* the function does all; the device's node is an empty one */
	bool is_function_last;
	CUDA_MEMCPY3D copy; /* the device's */
};

static void make_plan(struct plan *plan, const struct pageable *pageable,
	const struct side *to, const struct side *from)
{
	plan->copy = pageable->copy;
	plan->is_by_host = is_of_host(to) && is_of_host(from);
	plan->is_function_last = is_of_host(to) && !is_of_host(from);
	plan->function = pageable->pinned || plan->is_by_host ? move : skip;
	if (!pageable->pinned)
		return;
	if (plan->is_function_last)
		SET_PINNED(&plan->copy, dst, pageable);
	else
		SET_PINNED(&plan->copy, src, pageable);
}

static CUresult add_device(CUgraph graph, const CUgraphNode *after,
	const struct plan *plan, CUcontext context, CUgraphNode *addedp)
{
	const struct shim_node empty = { .kind = CU_GRAPH_NODE_TYPE_EMPTY };

	return plan->is_by_host ? add(graph, after, &empty, addedp)
				: add_copy(graph, after, &plan->copy, context, addedp);
}

/* Adds both nodes to an empty graph. */
static CUresult build(CUgraph graph, const CUDA_MEMCPY3D *given, CUcontext context)
{
	const struct side to = SIDE(given, dst), from = SIDE(given, src);
	struct pageable *pageable;
	CUgraphNode first, second;
	struct plan plan;
	CUresult result;

	result = pageable_new(given, &to, &from, &pageable);
	if (result != CUDA_SUCCESS)
		return result;
	make_plan(&plan, pageable, &to, &from);
	if (!plan.is_function_last) {
		result = add_function(graph, NULL, plan.function, pageable, &first);
		return result == CUDA_SUCCESS
			       ? add_device(graph, &first, &plan, context, &second)
			       : result;
	}
	result = add_device(graph, NULL, &plan, context, &first);
	if (result != CUDA_SUCCESS) {
		release(pageable);
		return result;
	}
	return add_function(graph, &first, plan.function, pageable, &second);
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

/* Finds the nodes of a node's child. Return: false unless it is such a copy. */
static bool look_inside(
	CUgraphNode handle, CUgraph *childp, CUgraphNode nodes[2], CUDA_MEMCPY3D *copy)
{
	struct shim_callback callback;
	CUgraphNodeType type;
	size_t n = 2;

	if (shim_remote_cuGraphNodeGetType(handle, &type) != CUDA_SUCCESS ||
		type != CU_GRAPH_NODE_TYPE_GRAPH ||
		shim_remote_cuGraphChildGraphNodeGetGraph(handle, childp) !=
			CUDA_SUCCESS ||
		shim_cuGraphGetNodes(*childp, nodes, &n) != CUDA_SUCCESS || n != 2)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (shim_graph_node_get_function(nodes[i], &callback) != CUDA_SUCCESS ||
			callback.released != release)
			continue;
		*copy = ((const struct pageable *)callback.data)->copy;
		return true;
	}
	return false;
}

bool shim_graph_pageable_find(CUgraphNode handle, CUDA_MEMCPY3D *copy)
{
	CUgraphNode nodes[2];
	CUgraph child;

	return look_inside(handle, &child, nodes, copy);
}

CUresult shim_graph_pageable_set(
	CUgraphNode handle, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	CUDA_MEMCPY3D before;
	CUgraphNode nodes[2];
	CUresult result;
	CUgraph child;

	if (!look_inside(handle, &child, nodes, &before))
		return CUDA_ERROR_INVALID_VALUE;
	/* What cannot be made is noticed before anything is changed. */
	for (int i = 0; i < 2; i++) {
		result = shim_cuGraphDestroyNode(nodes[i]);
		if (result != CUDA_SUCCESS)
			return result;
	}
	return build(child, copy, context);
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

/*
 * Captures
 */

CUresult shim_graph_pageable_capture(CUstream stream, const CUDA_MEMCPY3D *copy)
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
		result = shim_graph_node_add(&added, graph, &edges, &node);
	return result == CUDA_SUCCESS
		       ? shim_cuStreamUpdateCaptureDependencies(
				 stream, &added, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		       : result;
}
