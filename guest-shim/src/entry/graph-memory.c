/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that graphs allocate
 */

#include <stdlib.h>
#include <string.h>

#include "entry/graph-inside.h"
#include "entry/graph-memory.h"
#include "entry/graph-node.h"
#include "entry/graph-record.h"
#include "entry/pool-block.h"
#include "entry/pool-segment.h"
#include "memory/range.h"
#include "process/call.h"
#include "process/context.h"
#include "process/device.h"
#include "process/stream.h"
#include "wait/capture.h"
#include "wire/channel.h"
#include "wire/lock.h"
#include "wire/table.h"

static struct {
	struct shim_lock lock; /* of the records, too */
	uint32_t n_nodes;      /* atomic: that there ever were, so that most programs pay
				  nothing */
	CUmemoryPool pools[VGPU_DEVICES_MAX];
	struct shim_table moved; /* children that had such nodes */
} state;

bool shim_graph_memory_has_any(void)
{
	return __atomic_load_n(&state.n_nodes, __ATOMIC_RELAXED);
}

/*
 * Ends
 */

static bool is_needed(const struct shim_record *graph)
{
	return graph->handle.value || graph->exec.value || graph->n_in_use;
}

/* Takes the memory of one graph that nothing needs any more. Return: whether there was
 * one; *listp: its memory; *userp: the graph's last user. */
static bool take_ended(struct shim_record_memory **listp, CUcontext *userp)
{
	struct shim_record *graph;

	SHIM_LOCKED(&state.lock);
	graph = shim_record_first();
	while (graph && is_needed(graph))
		graph = graph->next;
	if (!graph)
		return false;
	*userp = graph->user;
	*listp = shim_record_free(graph);
	return true;
}

/* Return: whether work of a context is complete, or has ended with the context. */
static bool wait_for(CUcontext user)
{
	CUresult result = user ? shim_cuCtxSynchronize_v2(user) : CUDA_SUCCESS;

	return result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_CONTEXT ||
	       result == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/*
 * Gives memory back. Launches of one executable graph follow each other, and what frees
 * the memory follows its users: the context of the last of these is all that is waited
 * for. It cannot be while a capture is live; then this is done another time. After a
 * fault the memory stays in use, as all of the context's.
 */
static void settle(void)
{
	struct shim_record_memory *list;
	CUcontext user;

	if (shim_channel_has_capture())
		return;
	while (take_ended(&list, &user)) {
		bool is_complete = wait_for(user);

		while (list) {
			struct shim_record_memory *next = list->next;

			if (is_complete)
				shim_pool_free(list->address.value);
			free(list);
			list = next;
		}
	}
}

void shim_graph_memory_drop_graph(CUgraph handle)
{
	struct shim_record *graph;

	shim_lock(&state.lock);
	graph = shim_record_find(handle);
	if (graph)
		shim_record_drop_handles(graph);
	shim_unlock(&state.lock);
	if (graph)
		settle();
}

void shim_graph_memory_drop_exec(CUgraphExec exec)
{
	struct shim_record *graph;

	shim_lock(&state.lock);
	graph = shim_record_find_exec(exec);
	if (graph)
		shim_record_set_exec(graph, NULL);
	shim_unlock(&state.lock);
	if (graph)
		settle();
}

/*
 * Nodes
 */

static CUresult add_empty(
	CUgraphNode *nodep, CUgraph graph, const struct shim_edges *after)
{
	const struct shim_node node = { .kind = CU_GRAPH_NODE_TYPE_EMPTY };

	return shim_graph_node_add(nodep, graph, after, &node);
}

static CUresult get_pool(CUdevice device, struct shim_pool **poolp)
{
	CUmemoryPool made = NULL;
	CUresult result;

	shim_lock(&state.lock);
	made = state.pools[device];
	shim_unlock(&state.lock);
	if (!made) {
		result = shim_pool_new(device, 0, false, &made);
		if (result != CUDA_SUCCESS)
			return result;
		shim_lock(&state.lock);
		/* Of two threads, the pool of one is never used. */
		if (state.pools[device])
			made = state.pools[device];
		state.pools[device] = made;
		shim_unlock(&state.lock);
	}
	*poolp = shim_pool_find(made);
	return CUDA_SUCCESS;
}

/* A capture of this thread may forbid to allocate, but not for the capture itself. */
static CUresult take_block(struct shim_pool *pool, size_t size, CUdeviceptr *addressp)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	bool is_relaxed = shim_channel_has_capture() &&
			  shim_cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
	CUresult result = shim_pool_take(pool, size, addressp);

	if (is_relaxed)
		shim_cuThreadExchangeStreamCaptureMode(&mode);
	return result;
}

static CUresult check_params(const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	const CUmemPoolProps *props = &params->poolProps;

	if (!params->bytesize || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
		(params->accessDescCount && !params->accessDescs))
		return CUDA_ERROR_INVALID_VALUE;
	if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE ||
		props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	return shim_device_get(props->location.id) ? CUDA_SUCCESS
						   : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult set_access(
	struct shim_pool *pool, const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < params->accessDescCount && result == CUDA_SUCCESS; i++) {
		const CUmemAccessDesc *desc = &params->accessDescs[i];

		if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			result = CUDA_ERROR_INVALID_VALUE;
		else if (!shim_device_get(desc->location.id))
			result = CUDA_ERROR_INVALID_DEVICE;
		else
			result = shim_pool_set_access(
				pool, desc->location.id, desc->flags);
	}
	return result;
}

/* Notes an allocation, with entries that the caller has made. Return: false without
 * memory. */
static bool note_alloc(CUgraph handle, CUgraphNode node_handle,
	struct shim_record_node *node, struct shim_record_memory *memory)
{
	struct shim_record *graph;

	SHIM_LOCKED(&state.lock);
	graph = shim_record_get(handle);
	if (!graph)
		return false;
	node->address = node->params.dptr;
	shim_record_add_memory(graph, memory, node->address);
	shim_record_add_node(graph, node, node_handle);
	__atomic_fetch_add(&state.n_nodes, 1, __ATOMIC_RELAXED);
	return true;
}

/* The block is taken: adds the node. */
static CUresult add_alloc(CUgraphNode *nodep, CUgraph graph,
	const struct shim_edges *after, const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	struct shim_record_memory *memory = calloc(1, sizeof(*memory));
	struct shim_record_node *node = shim_record_node_new(params);
	CUresult result = memory && node ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	if (result == CUDA_SUCCESS)
		result = add_empty(nodep, graph, after);
	if (result == CUDA_SUCCESS) {
		if (note_alloc(graph, *nodep, node, memory))
			return CUDA_SUCCESS;
		shim_cuGraphDestroyNode(*nodep);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	shim_record_node_free(node);
	free(memory);
	return result;
}

CUresult shim_graph_memory_add_alloc(CUgraphNode *nodep, CUgraph graph,
	const struct shim_edges *after, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	struct shim_pool *pool;
	CUresult result;

	SHIM_CHECK_READY();
	if (!nodep || !params)
		return CUDA_ERROR_INVALID_VALUE;
	/* CUDA Driver API, CUDA_CONDITIONAL_NODE_PARAMS, cuGraphAddChildGraphNode. */
	if (shim_graph_is_inside(graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = check_params(params);
	if (result == CUDA_SUCCESS)
		result = get_pool(params->poolProps.location.id, &pool);
	if (result == CUDA_SUCCESS)
		result = set_access(pool, params);
	if (result == CUDA_SUCCESS)
		result = take_block(pool, params->bytesize, &params->dptr);
	if (result != CUDA_SUCCESS)
		return result;
	result = add_alloc(nodep, graph, after, params);
	if (result != CUDA_SUCCESS)
		shim_pool_free(params->dptr);
	return result;
}

/* With the lock. Return: whether a node of the graph may free what is there; *is_insidep:
 * it is the graph's own. */
static bool may_free(CUgraph graph, CUdeviceptr address, bool *is_insidep)
{
	const struct shim_record_memory *memory = shim_record_find_memory(address);
	struct shim_range range;

	*is_insidep = memory && memory->graph == shim_record_find(graph);
	if (memory)
		return !*is_insidep || !memory->is_freed_inside;
	return shim_pool_find_range(address, &range) && range.base == address &&
	       range.owner;
}

/* Notes a node that frees memory. Return: false without memory. */
static bool note_free(CUgraph handle, CUgraphNode node_handle,
	struct shim_record_node *node, bool is_inside)
{
	struct shim_record_memory *memory;
	struct shim_record *graph;

	SHIM_LOCKED(&state.lock);
	graph = shim_record_get(handle);
	if (!graph)
		return false;
	shim_record_add_node(graph, node, node_handle);
	__atomic_fetch_add(&state.n_nodes, 1, __ATOMIC_RELAXED);
	memory = is_inside ? shim_record_find_memory(node->address) : NULL;
	if (memory)
		memory->is_freed_inside = true;
	return true;
}

CUresult shim_graph_memory_add_free(CUgraphNode *nodep, CUgraph graph,
	const struct shim_edges *after, CUdeviceptr address)
{
	struct shim_record_node *node;
	bool is_inside, is_legal;
	CUresult result;

	SHIM_CHECK_READY();
	if (!nodep)
		return CUDA_ERROR_INVALID_VALUE;
	if (shim_graph_is_inside(graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	shim_lock(&state.lock);
	is_legal = may_free(graph, address, &is_inside);
	shim_unlock(&state.lock);
	if (!is_legal)
		return CUDA_ERROR_INVALID_VALUE;
	node = shim_record_node_new(NULL);
	if (!node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node->address = address;
	result = add_empty(nodep, graph, after);
	if (result == CUDA_SUCCESS && !note_free(graph, *nodep, node, is_inside)) {
		shim_cuGraphDestroyNode(*nodep);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result != CUDA_SUCCESS)
		shim_record_node_free(node);
	return result;
}

bool shim_graph_memory_type(CUgraphNode handle, CUgraphNodeType *type)
{
	const struct shim_record_node *node;

	SHIM_LOCKED(&state.lock);
	node = shim_record_find_node(handle);
	if (node)
		*type = node->is_alloc ? CU_GRAPH_NODE_TYPE_MEM_ALLOC
				       : CU_GRAPH_NODE_TYPE_MEM_FREE;
	return node;
}

bool shim_graph_memory_has(CUgraph graph)
{
	SHIM_LOCKED(&state.lock);
	return shim_record_find(graph);
}

/*
 * Children that are moved
 */

CUresult shim_graph_memory_check_move(CUgraph child, CUgraph graph)
{
	const struct shim_record *record, *around;
	SHIM_LOCKED(&state.lock);

	record = shim_record_find(child);
	if (!record)
		return CUDA_SUCCESS;
	around = shim_record_find(graph);
	/* Launches of executable graphs that are there already do not have the nodes. */
	return shim_graph_is_inside(graph) || record->exec.value || record->is_captured ||
			       (around && around->exec.value)
		       ? CUDA_ERROR_NOT_SUPPORTED
		       : CUDA_SUCCESS;
}

/* The record of the graph, if it has none, is the child's. */
void shim_graph_memory_move(CUgraph child, CUgraph graph)
{
	struct shim_record *record, *around;
	SHIM_LOCKED(&state.lock);

	record = shim_record_find(child);
	if (!record)
		return;
	around = shim_record_find(graph);
	shim_table_set(
		&state.moved, vgpu_handle_index((uint64_t)(uintptr_t)child), child);
	if (around)
		shim_record_merge(around, record);
	else
		shim_record_set_handle(record, graph);
}

bool shim_graph_memory_was_moved(CUgraph child)
{
	return shim_graph_memory_has_any() &&
	       shim_table_get(&state.moved,
		       vgpu_handle_index((uint64_t)(uintptr_t)child)) == child;
}

/*
 * Captures
 */

/* Adds a node by `add` behind what the stream has captured. */
static CUresult capture(
	CUstream stream, CUDA_MEM_ALLOC_NODE_PARAMS *params, CUdeviceptr address)
{
	const CUgraphNode *dependencies;
	CUstreamCaptureStatus status;
	struct shim_edges edges = {};
	struct shim_record *found;
	CUgraphNode added;
	CUresult result;
	CUgraph graph;

	result = shim_cuStreamGetCaptureInfo_v2(
		stream, &status, NULL, &graph, &dependencies, &edges.n);
	if (result != CUDA_SUCCESS)
		return result;
	edges.nodes = dependencies;
	result = params ? shim_graph_memory_add_alloc(&added, graph, &edges, params)
			: shim_graph_memory_add_free(&added, graph, &edges, address);
	if (result != CUDA_SUCCESS)
		return result;
	shim_lock(&state.lock);
	found = shim_record_find(graph);
	if (found) {
		found->capture = stream;
		found->is_captured = true;
	}
	shim_unlock(&state.lock);
	return shim_cuStreamUpdateCaptureDependencies(
		stream, &added, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

CUresult shim_graph_memory_capture_alloc(
	CUstream stream, CUdevice device, size_t size, CUdeviceptr *addressp)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {
			.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = { CU_MEM_LOCATION_TYPE_DEVICE, device },
		},
		.bytesize = size,
	};
	CUresult result = capture(stream, &params, 0);

	if (result == CUDA_SUCCESS)
		*addressp = params.dptr;
	return result;
}

CUresult shim_graph_memory_capture_free(CUstream stream, CUdeviceptr address)
{
	return capture(stream, NULL, address);
}

void shim_graph_memory_end_capture(CUstream stream, bool is_kept)
{
	CUgraph lost = NULL;
	struct shim_record *graph;

	shim_lock(&state.lock);
	for (graph = shim_record_first(); graph; graph = graph->next)
		if (graph->is_captured && graph->capture == stream) {
			graph->is_captured = false;
			if (!is_kept)
				lost = (CUgraph)(uintptr_t)graph->handle.value;
		}
	shim_unlock(&state.lock);
	if (lost)
		shim_graph_memory_drop_graph(lost);
}

/*
 * Launches
 */

CUresult shim_graph_memory_check_exec(CUgraph handle)
{
	const struct shim_record *graph;
	SHIM_LOCKED(&state.lock);

	graph = shim_record_find(handle);
	return graph && graph->exec.value ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

void shim_graph_memory_note_exec(CUgraph handle, CUgraphExec exec, uint64_t flags)
{
	struct shim_record *graph;
	SHIM_LOCKED(&state.lock);

	graph = shim_record_find(handle);
	if (graph) {
		shim_record_set_exec(graph, exec);
		graph->frees_at_launch =
			flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
	}
}

/* With the lock. Return: whether a node can do its work now. */
static bool can_do(const struct shim_record *graph, const struct shim_record_node *node)
{
	const struct shim_record_memory *memory = shim_record_find_memory(node->address);

	if (node->is_alloc)
		return memory && (!memory->is_in_use || graph->frees_at_launch);
	/* What the same launch allocates, another graph has, or a pool. */
	return !memory || memory->graph == graph || memory->is_in_use;
}

static bool has_memory(CUgraphExec exec)
{
	SHIM_LOCKED(&state.lock);
	return shim_record_find_exec(exec);
}

static CUresult check_launch(CUgraphExec exec)
{
	const struct shim_record *graph;
	const struct shim_record_node *node;
	SHIM_LOCKED(&state.lock);

	graph = shim_record_find_exec(exec);
	for (node = graph ? graph->nodes : NULL; node; node = node->next)
		if (!can_do(graph, node))
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* A launch into a stream in capture would become a child graph. */
CUresult shim_graph_memory_check_launch(CUgraphExec exec, CUstream stream)
{
	if (!shim_graph_memory_has_any() || !has_memory(exec))
		return CUDA_SUCCESS;
	return shim_capture_is_active(stream) ? CUDA_ERROR_NOT_SUPPORTED
					      : check_launch(exec);
}

/* With the lock: whether the memory is in use after a launch. */
static void note_node(const struct shim_record_node *node)
{
	struct shim_record_memory *memory = shim_record_find_memory(node->address);

	if (memory)
		shim_record_set_in_use(
			memory, node->is_alloc && !memory->is_freed_inside);
}

/* Some of the nodes that free memory of a pool: how many are after the first ones. */
static size_t find_pool_frees(
	CUgraphExec exec, size_t first, CUdeviceptr *addresses, size_t n_max)
{
	const struct shim_record *graph;
	const struct shim_record_node *node;
	size_t n = 0;
	SHIM_LOCKED(&state.lock);

	graph = shim_record_find_exec(exec);
	for (node = graph ? graph->nodes : NULL; node && n < n_max; node = node->next)
		if (!node->is_alloc && !shim_record_find_memory(node->address) &&
			(!first || !first--))
			addresses[n++] = node->address;
	return n;
}

static CUcontext context_of(CUstream handle)
{
	struct shim_stream *stream;

	return shim_stream_find_checked(handle, &stream) == CUDA_SUCCESS
		       ? shim_context_public(stream->context)
		       : NULL;
}

void shim_graph_memory_note_launch(CUgraphExec exec, CUstream stream)
{
	const struct shim_record_node *node;
	CUdeviceptr addresses[64];
	struct shim_record *graph;
	size_t n, first = 0;
	CUcontext user;

	if (!shim_graph_memory_has_any())
		return;
	user = context_of(stream);
	shim_lock(&state.lock);
	graph = shim_record_find_exec(exec);
	if (graph)
		graph->user = user;
	for (node = graph ? graph->nodes : NULL; node; node = node->next)
		note_node(node);
	shim_unlock(&state.lock);
	do {
		n = graph ? find_pool_frees(exec, first, addresses, 64) : 0;
		for (size_t i = 0; i < n; i++)
			shim_pool_free_async(addresses[i], stream);
		first += n;
	} while (n == 64);
}

bool shim_graph_memory_free(
	CUdeviceptr address, const struct shim_context *user, CUresult *resultp)
{
	struct shim_record_memory *memory;

	if (!shim_graph_memory_has_any())
		return false;
	shim_lock(&state.lock);
	memory = shim_record_find_memory(address);
	if (memory) {
		*resultp = memory->is_in_use ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
		shim_record_set_in_use(memory, false);
		if (user)
			memory->graph->user = shim_context_public(user);
	}
	shim_unlock(&state.lock);
	if (memory && *resultp == CUDA_SUCCESS)
		settle();
	return memory;
}

/*
 * Entry points
 */

CUresult shim_cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
	const struct shim_edges edges = { .nodes = dependencies, .n = numDependencies };

	return shim_graph_memory_add_alloc(phGraphNode, hGraph, &edges, nodeParams);
}

CUresult shim_cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUdeviceptr dptr)
{
	const struct shim_edges edges = { .nodes = dependencies, .n = numDependencies };

	return shim_graph_memory_add_free(phGraphNode, hGraph, &edges, dptr);
}

CUresult shim_cuGraphMemAllocNodeGetParams(
	CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
	const struct shim_record_node *node;

	SHIM_CHECK_READY();
	if (!params_out)
		return CUDA_ERROR_INVALID_VALUE;
	shim_lock(&state.lock);
	node = shim_record_find_node(hNode);
	if (node && node->is_alloc)
		*params_out = node->params;
	shim_unlock(&state.lock);
	return node && node->is_alloc ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult shim_cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
	const struct shim_record_node *node;

	SHIM_CHECK_READY();
	if (!dptr_out)
		return CUDA_ERROR_INVALID_VALUE;
	shim_lock(&state.lock);
	node = shim_record_find_node(hNode);
	if (node && !node->is_alloc)
		*dptr_out = node->address;
	shim_unlock(&state.lock);
	return node && !node->is_alloc ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The attributes of the pool say the same of it. */
static bool pool_attribute(CUgraphMem_attribute attribute, CUmemPool_attribute *same)
{
	switch (attribute) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
		*same = CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
		return true;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
		*same = CU_MEMPOOL_ATTR_USED_MEM_HIGH;
		return true;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		*same = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
		return true;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
		*same = CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
		return true;
	default:
		return false;
	}
}

static CUresult find_pool(CUdevice device, const void *value,
	CUgraphMem_attribute attribute, CUmemPool_attribute *same,
	struct shim_pool **poolp)
{
	if (!shim_device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value || !pool_attribute(attribute, same))
		return CUDA_ERROR_INVALID_VALUE;
	return get_pool(device, poolp);
}

CUresult shim_cuDeviceGetGraphMemAttribute(
	CUdevice device, CUgraphMem_attribute attr, void *value)
{
	CUmemPool_attribute same;
	struct shim_pool *pool;
	CUresult result;

	SHIM_CHECK_READY();
	result = find_pool(device, value, attr, &same, &pool);
	return result == CUDA_SUCCESS ? shim_pool_get_attribute(pool, same, value)
				      : result;
}

CUresult shim_cuDeviceSetGraphMemAttribute(
	CUdevice device, CUgraphMem_attribute attr, void *value)
{
	CUmemPool_attribute same;
	struct shim_pool *pool;
	CUresult result;

	SHIM_CHECK_READY();
	result = find_pool(device, value, attr, &same, &pool);
	return result == CUDA_SUCCESS ? shim_pool_set_attribute(pool, same, value)
				      : result;
}

CUresult shim_cuDeviceGraphMemTrim(CUdevice device)
{
	struct shim_pool *pool;
	CUresult result;

	SHIM_CHECK_READY();
	if (!shim_device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	result = get_pool(device, &pool);
	if (result != CUDA_SUCCESS)
		return result;
	settle();
	shim_pool_settle(pool);
	shim_pool_trim(pool, 0);
	return CUDA_SUCCESS;
}
