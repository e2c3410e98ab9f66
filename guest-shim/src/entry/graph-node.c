/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of graphs: what they do, to the host and back
 *
 * The parameters of a kernel node, and the operations of a batch, are read back into
 * memory that belongs to the node's handle, found by its index. It is given to the
 * program, so once made it stays, and is used again for the next node of that index.
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/g-driver.pb-c.h"
#include "vgpu/handle.h"

#include "code/function.h"
#include "code/launch.h"
#include "entry/graph-exec.h"
#include "entry/graph-memory.h"
#include "entry/graph-node.h"
#include "entry/graph-shadow.h"
#include "entry/memop.h"
#include "process/call.h"
#include "process/callback.h"
#include "process/context.h"
#include "wait/event.h"
#include "wire/lock.h"
#include "wire/table.h"

/* Parameters of a kernel as the program reads them. */
struct params {
	uint8_t *block;
	uint32_t size;
	void **pointers;
	uint32_t n_pointers;
};

static struct shim_lock params_lock;
static struct shim_table params_table;

CUresult shim_graph_node_kernel(
	struct shim_node *node, const CUDA_KERNEL_NODE_PARAMS *params)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGraphAddNode_v2);
	CUresult result = shim_call_check(call.id);
	struct shim_function *function;

	if (result != CUDA_SUCCESS)
		return result;
	if (!params || (!params->func && !params->kern))
		return CUDA_ERROR_INVALID_VALUE;
	*node = (struct shim_node){
		.kind = CU_GRAPH_NODE_TYPE_KERNEL,
		.context = params->ctx,
		.function = params->func,
		.kernel = params->kern,
		.detail_size = sizeof(node->detail.dims),
	};
	node->detail.dims = (struct vgpu_launch_dims){
		.axis = { { params->gridDimX, params->blockDimX },
			{ params->gridDimY, params->blockDimY },
			{ params->gridDimZ, params->blockDimZ } },
		.shared_bytes = params->sharedMemBytes,
	};
	result = shim_function_get(
		params->func ? params->func : (CUfunction)params->kern, &function);
	if (result == CUDA_SUCCESS)
		result = shim_launch_gather(
			&(struct shim_launch){
				.params = params->kernelParams,
				.extra = params->extra,
			},
			function, shim_thread_get()->params);
	node->n_params = result == CUDA_SUCCESS ? function->param_bytes : 0;
	return result;
}

/* Whether one side of a copy is ordinary memory of the program. */
static bool is_pageable(const CUDA_MEMCPY3D *copy)
{
	const struct shim_graph_side to = shim_graph_side_to(copy);
	const struct shim_graph_side from = shim_graph_side_from(copy);

	return shim_graph_side_is_pageable(&to) || shim_graph_side_is_pageable(&from);
}

CUresult shim_graph_node_copy(
	struct shim_node *node, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	*node = (struct shim_node){
		.kind = CU_GRAPH_NODE_TYPE_MEMCPY,
		.context = context,
		.detail_size = sizeof(*copy),
		.detail.copy = *copy,
	};
	node->is_pageable = is_pageable(copy);
	return CUDA_SUCCESS;
}

CUresult shim_graph_node_fill(
	struct shim_node *node, const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
	if (!fill)
		return CUDA_ERROR_INVALID_VALUE;
	*node = (struct shim_node){
		.kind = CU_GRAPH_NODE_TYPE_MEMSET,
		.context = context,
		.detail_size = sizeof(*fill),
		.detail.fill = *fill,
	};
	return CUDA_SUCCESS;
}

CUresult shim_graph_node_event(
	struct shim_node *node, CUgraphNodeType kind, CUevent event)
{
	const struct shim_event *found = shim_event_find(event);

	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	/* Other processes would not learn of a record in a graph. */
	if (found->share)
		return CUDA_ERROR_NOT_SUPPORTED;
	*node = (struct shim_node){ .kind = kind, .event = event };
	if (kind == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
		shim_event_note_graph(event);
	return CUDA_SUCCESS;
}

CUresult shim_graph_node_function(
	struct shim_node *node, const struct shim_callback *callback)
{
	CUresult result = shim_call_check(VGPU_CALL_cuGraphAddNode_v2);

	*node = (struct shim_node){ .kind = CU_GRAPH_NODE_TYPE_HOST };
	return result == CUDA_SUCCESS ? shim_callback_add(callback, &node->cookie)
				      : result;
}

CUresult shim_graph_node_host(struct shim_node *node, const CUDA_HOST_NODE_PARAMS *params)
{
	struct shim_callback callback = { .kind = SHIM_CALLBACK_OF_GRAPH };

	if (!params || !params->fn)
		return CUDA_ERROR_INVALID_VALUE;
	callback.host_function = params->fn;
	callback.data = params->userData;
	return shim_graph_node_function(node, &callback);
}

CUresult shim_graph_node_batch(
	struct shim_node *node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	static_assert(
		SHIM_MEMOPS_MAX * sizeof(*params->paramArray) <= VGPU_LAUNCH_PARAMS_MAX,
		"a batch fits the block of a kernel's parameters");
	CUresult result = shim_call_check(VGPU_CALL_cuGraphAddNode_v2);

	if (result != CUDA_SUCCESS)
		return result;
	if (!params || !shim_memops_are_valid(params->paramArray, params->count))
		return CUDA_ERROR_INVALID_VALUE;
	*node = (struct shim_node){
		.kind = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
		.context = params->ctx,
		.detail_size = sizeof(node->detail.flags),
		.detail.flags = params->flags,
		.n_params = params->count * sizeof(*params->paramArray),
	};
	memcpy(shim_thread_get()->params, params->paramArray, node->n_params);
	return CUDA_SUCCESS;
}

CUresult shim_graph_node_child(struct shim_node *node, CUgraph child)
{
	if (shim_graph_memory_has(child))
		return CUDA_ERROR_NOT_SUPPORTED;
	*node = (struct shim_node){
		.kind = CU_GRAPH_NODE_TYPE_GRAPH,
		.child = child,
	};
	return CUDA_SUCCESS;
}

CUresult shim_graph_node_conditional(struct shim_node *node,
	const CUDA_CONDITIONAL_NODE_PARAMS *params, CUgraph *bodies)
{
	if (params->size > VGPU_GRAPH_BODIES_MAX)
		return params->type == CU_GRAPH_COND_TYPE_SWITCH
			       ? CUDA_ERROR_OUT_OF_MEMORY
			       : CUDA_ERROR_INVALID_VALUE;
	*node = (struct shim_node){
		.kind = CU_GRAPH_NODE_TYPE_CONDITIONAL,
		.context = params->ctx,
		.bodies = bodies,
		.detail_size = sizeof(node->detail.conditional),
		.detail.conditional = {
			.handle = params->handle,
			.type = (int32_t)params->type,
			.n_bodies = params->size,
		},
	};
	return CUDA_SUCCESS;
}

CUresult shim_graph_node_moved(struct shim_node *node, CUgraph child)
{
	*node = (struct shim_node){
		.kind = CU_GRAPH_NODE_TYPE_GRAPH,
		.child = child,
		.detail_size = sizeof(node->detail.flags),
		.detail.flags = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE,
	};
	return CUDA_SUCCESS;
}

static CUresult kernel_v3(
	struct shim_node *node, const CUDA_KERNEL_NODE_PARAMS_v3 *params)
{
	const CUDA_KERNEL_NODE_PARAMS same = {
		.func = params->func,
		.gridDimX = params->gridDimX,
		.gridDimY = params->gridDimY,
		.gridDimZ = params->gridDimZ,
		.blockDimX = params->blockDimX,
		.blockDimY = params->blockDimY,
		.blockDimZ = params->blockDimZ,
		.sharedMemBytes = params->sharedMemBytes,
		.kernelParams = params->kernelParams,
		.extra = params->extra,
		.kern = params->kern,
		.ctx = params->ctx,
	};

	return shim_graph_node_kernel(node, &same);
}

static CUresult fill_v2(struct shim_node *node, const CUDA_MEMSET_NODE_PARAMS_v2 *params)
{
	const CUDA_MEMSET_NODE_PARAMS same = {
		.dst = params->dst,
		.pitch = params->pitch,
		.value = params->value,
		.elementSize = params->elementSize,
		.width = params->width,
		.height = params->height,
	};

	return shim_graph_node_fill(node, &same, params->ctx);
}

CUresult shim_graph_node_generic(struct shim_node *node, const CUgraphNodeParams *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return kernel_v3(node, &params->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return shim_graph_node_copy(
			node, &params->memcpy.copyParams, params->memcpy.copyCtx);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return fill_v2(node, &params->memset);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return shim_graph_node_event(
			node, params->type, params->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return shim_graph_node_event(node, params->type, params->eventWait.event);
	case CU_GRAPH_NODE_TYPE_HOST:
		return shim_graph_node_host(
			node, (const CUDA_HOST_NODE_PARAMS *)&params->host);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		if (params->graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
			return CUDA_ERROR_INVALID_VALUE;
		return shim_graph_node_child(node, params->graph.graph);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return shim_graph_node_batch(
			node, (const CUDA_BATCH_MEM_OP_NODE_PARAMS *)&params->memOp);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		*node = (struct shim_node){ .kind = params->type };
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/*
 * To the host
 */

/* The three messages name these fields alike. */
#define SET_NODE(_request, _node)                                                        \
	do {                                                                             \
		(_request)->kind = (int32_t)(_node)->kind;                               \
		(_request)->node_context = (uint64_t)(uintptr_t)(_node)->context;        \
		(_request)->function = (uint64_t)(uintptr_t)(_node)->function;           \
		(_request)->kernel = (uint64_t)(uintptr_t)(_node)->kernel;               \
		(_request)->event = (uint64_t)(uintptr_t)(_node)->event;                 \
		(_request)->child = (uint64_t)(uintptr_t)(_node)->child;                 \
		(_request)->cookie = (_node)->cookie;                                    \
		(_request)->detail.data = (uint8_t *)&(_node)->detail;                   \
		(_request)->detail.len = (_node)->detail_size;                           \
		(_request)->params.data = shim_thread_get()->params;                     \
		(_request)->params.len = (_node)->n_params;                              \
	} while (0)

/* The description was used. Return: the result. */
static CUresult done(const struct shim_node *node, CUresult result)
{
	if (result != CUDA_SUCCESS && node->kind == CU_GRAPH_NODE_TYPE_HOST)
		shim_callback_withdraw(node->cookie);
	return result;
}

static CUresult take_added(const Vgpu__CuGraphAddNodeV2Reply *reply,
	const struct shim_node *node, CUgraphNode *addedp)
{
	size_t n = node->bodies ? node->detail.conditional.n_bodies : 0;

	if (reply->bodies.len != n * sizeof(*node->bodies))
		return CUDA_ERROR_UNKNOWN;
	if (n)
		memcpy(node->bodies, reply->bodies.data, reply->bodies.len);
	*addedp = (CUgraphNode)(uintptr_t)reply->ph_graph_node;
	return CUDA_SUCCESS;
}

static CUresult add(CUgraphNode *addedp, CUgraph graph, const struct shim_edges *after,
	const struct shim_node *node)
{
	Vgpu__CuGraphAddNodeV2Request request = VGPU__CU_GRAPH_ADD_NODE_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGraphAddNode_v2);
	const ProtobufCMessage *reply;
	CUresult result;

	request.h_graph = (uint64_t)(uintptr_t)graph;
	request.dependencies_list.data = (uint8_t *)after->nodes;
	request.dependencies_list.len = after->n * sizeof(*after->nodes);
	request.edges.data = (uint8_t *)after->data;
	request.edges.len = after->data ? after->n * sizeof(*after->data) : 0;
	SET_NODE(&request, node);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_graph_add_node_v2_reply__descriptor, &reply);
	return result == CUDA_SUCCESS
		       ? take_added(
				 (const Vgpu__CuGraphAddNodeV2Reply *)reply, node, addedp)
		       : result;
}

/* Adds the edges that had no room in the message. */
static CUresult add_more_edges(
	CUgraph graph, CUgraphNode node, const struct shim_edges *after)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = VGPU_GRAPH_LIST_MAX; i < after->n && result == CUDA_SUCCESS; i++)
		result = shim_cuGraphAddDependencies_v2(graph, &after->nodes[i], &node,
			after->data ? &after->data[i] : NULL, 1);
	return result;
}

static CUresult add_with_edges(CUgraphNode *addedp, CUgraph graph,
	const struct shim_edges *after, const struct shim_node *node)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGraphAddNode_v2);
	struct shim_edges first = *after;
	CUgraphNode added = NULL;
	CUresult result;

	if (!addedp || (after->n && !after->nodes))
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	if (shim_graph_edges_are_plain(after->data, after->n))
		first.data = NULL;
	if (first.n > VGPU_GRAPH_LIST_MAX)
		first.n = VGPU_GRAPH_LIST_MAX;
	result = add(&added, graph, &first, node);
	if (result != CUDA_SUCCESS)
		return result;
	result = add_more_edges(graph, added, after);
	if (result == CUDA_SUCCESS)
		*addedp = added;
	else
		shim_cuGraphDestroyNode(added);
	return result;
}

CUresult shim_graph_node_add(CUgraphNode *addedp, CUgraph graph,
	const struct shim_edges *after, const struct shim_node *node)
{
	return done(node, add_with_edges(addedp, graph, after, node));
}

CUresult shim_graph_node_set(CUgraphNode handle, const struct shim_node *node)
{
	Vgpu__CuGraphNodeSetParamsRequest request =
		VGPU__CU_GRAPH_NODE_SET_PARAMS_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGraphNodeSetParams);
	CUresult result;

	request.h_node = (uint64_t)(uintptr_t)handle;
	SET_NODE(&request, node);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_graph_node_set_params_reply__descriptor, NULL);
	return done(node, result);
}

CUresult shim_graph_node_set_in_exec(
	CUgraphExec exec, CUgraphNode handle, const struct shim_node *node)
{
	Vgpu__CuGraphExecNodeSetParamsRequest request =
		VGPU__CU_GRAPH_EXEC_NODE_SET_PARAMS_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuGraphExecNodeSetParams);
	CUresult result;

	request.h_graph_exec = (uint64_t)(uintptr_t)exec;
	request.h_node = (uint64_t)(uintptr_t)handle;
	SET_NODE(&request, node);
	shim_graph_exec_forget(exec);
	result = shim_call_sync(&call, &request.base,
		&vgpu__cu_graph_exec_node_set_params_reply__descriptor, NULL);
	return done(node, result);
}

/*
 * And back
 */

static CUresult ask(CUgraphNode handle, CUgraphNodeType kind, uint32_t first,
	const Vgpu__VgpuGraphNodeReply **replyp)
{
	Vgpu__VgpuGraphNodeRequest request = VGPU__VGPU_GRAPH_NODE_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_vgpuGraphNode);
	const ProtobufCMessage *reply;
	CUresult result;

	request.node = (uint64_t)(uintptr_t)handle;
	request.first = first;
	result = shim_call_sync(
		&call, &request.base, &vgpu__vgpu_graph_node_reply__descriptor, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	*replyp = (const Vgpu__VgpuGraphNodeReply *)reply;
	return (*replyp)->kind == (int)kind ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult take_detail(
	const Vgpu__VgpuGraphNodeReply *reply, void *detail, size_t size)
{
	if (reply->detail.len != size)
		return CUDA_ERROR_UNKNOWN;
	memcpy(detail, reply->detail.data, size);
	return CUDA_SUCCESS;
}

static struct params *find_params(CUgraphNode handle)
{
	uint32_t index = vgpu_handle_index((uint64_t)(uintptr_t)handle);
	struct params *params;

	SHIM_LOCKED(&params_lock);
	params = shim_table_get(&params_table, index);
	if (params)
		return params;
	params = calloc(1, sizeof(*params));
	if (params && !shim_table_set(&params_table, index, params)) {
		free(params);
		return NULL;
	}
	return params;
}

/* One pointer for each parameter of the function, into the block. */
static CUresult point_at_params(
	struct params *params, const struct shim_function *function)
{
	void **pointers = params->pointers;

	if (params->n_pointers < function->n_params || !pointers) {
		/* The program may hold the array that was too small. */
		pointers = calloc(function->n_params + 1, sizeof(*pointers));
		if (!pointers)
			return CUDA_ERROR_OUT_OF_MEMORY;
		params->n_pointers = function->n_params;
	}
	for (uint32_t i = 0; i < function->n_params; i++)
		pointers[i] = params->block + function->offsets[i];
	params->pointers = pointers;
	return CUDA_SUCCESS;
}

/* The program may hold the block that is too small. */
static CUresult make_room(struct params *params, uint32_t size)
{
	uint8_t *block;

	if (size > VGPU_LAUNCH_PARAMS_MAX)
		return CUDA_ERROR_UNKNOWN;
	if (params->block && size <= params->size)
		return CUDA_SUCCESS;
	block = calloc(1, size + 1);
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	params->block = block;
	params->size = size;
	return CUDA_SUCCESS;
}

/* Fetches the block of parameters, whose first page is there. */
static CUresult take_params(
	CUgraphNode handle, const Vgpu__VgpuGraphNodeReply *reply, struct params *params)
{
	const CUgraphNodeType kind = (CUgraphNodeType)reply->kind;
	uint32_t n = reply->n_params, done = 0;
	CUresult result = make_room(params, n);

	while (result == CUDA_SUCCESS) {
		if (reply->params.len > n - done || (done < n && !reply->params.len))
			return CUDA_ERROR_UNKNOWN;
		memcpy(params->block + done, reply->params.data, reply->params.len);
		done += (uint32_t)reply->params.len;
		if (done == n)
			break;
		result = ask(handle, kind, done, &reply);
	}
	return result;
}

CUresult shim_graph_node_get_kernel(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *told)
{
	const Vgpu__VgpuGraphNodeReply *reply;
	CUDA_KERNEL_NODE_PARAMS params = {};
	struct shim_function *function;
	struct vgpu_launch_dims dims;
	struct params *kept;
	CUresult result;

	result = ask(handle, CU_GRAPH_NODE_TYPE_KERNEL, 0, &reply);
	if (result == CUDA_SUCCESS)
		result = take_detail(reply, &dims, sizeof(dims));
	if (result != CUDA_SUCCESS)
		return result;
	params = (CUDA_KERNEL_NODE_PARAMS){
		.func = (CUfunction)(uintptr_t)reply->function,
		.gridDimX = dims.axis[0].grid,
		.gridDimY = dims.axis[1].grid,
		.gridDimZ = dims.axis[2].grid,
		.blockDimX = dims.axis[0].block,
		.blockDimY = dims.axis[1].block,
		.blockDimZ = dims.axis[2].block,
		.sharedMemBytes = dims.shared_bytes,
		.kern = (CUkernel)(uintptr_t)reply->kernel,
		.ctx = (CUcontext)(uintptr_t)reply->node_context,
	};
	kept = find_params(handle);
	if (!kept)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = take_params(handle, reply, kept);
	if (result == CUDA_SUCCESS)
		result = shim_function_get(
			params.func ? params.func : (CUfunction)params.kern, &function);
	if (result == CUDA_SUCCESS)
		result = point_at_params(kept, function);
	if (result != CUDA_SUCCESS)
		return result;
	params.kernelParams = kept->pointers;
	*told = params;
	return CUDA_SUCCESS;
}

CUresult shim_graph_node_get_copy(CUgraphNode handle, CUDA_MEMCPY3D *copy)
{
	const Vgpu__VgpuGraphNodeReply *reply;
	CUresult result;

	result = ask(handle, CU_GRAPH_NODE_TYPE_MEMCPY, 0, &reply);
	return result == CUDA_SUCCESS ? take_detail(reply, copy, sizeof(*copy)) : result;
}

CUresult shim_graph_node_get_fill(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *fill)
{
	const Vgpu__VgpuGraphNodeReply *reply;
	CUresult result = ask(handle, CU_GRAPH_NODE_TYPE_MEMSET, 0, &reply);

	return result == CUDA_SUCCESS ? take_detail(reply, fill, sizeof(*fill)) : result;
}

CUresult shim_graph_node_get_event(
	CUgraphNode handle, CUgraphNodeType kind, CUevent *eventp)
{
	const Vgpu__VgpuGraphNodeReply *reply;
	CUresult result = ask(handle, kind, 0, &reply);

	if (result == CUDA_SUCCESS)
		*eventp = (CUevent)(uintptr_t)reply->event;
	return result;
}

CUresult shim_graph_node_get_function(CUgraphNode handle, struct shim_callback *callback)
{
	const Vgpu__VgpuGraphNodeReply *reply;
	CUresult result = ask(handle, CU_GRAPH_NODE_TYPE_HOST, 0, &reply);

	if (result != CUDA_SUCCESS)
		return result;
	return shim_callback_find(reply->cookie, callback) ? CUDA_SUCCESS
							   : CUDA_ERROR_UNKNOWN;
}

CUresult shim_graph_node_get_host(CUgraphNode handle, CUDA_HOST_NODE_PARAMS *params)
{
	struct shim_callback callback;
	CUresult result = shim_graph_node_get_function(handle, &callback);

	if (result != CUDA_SUCCESS)
		return result;
	*params = (CUDA_HOST_NODE_PARAMS){ callback.host_function, callback.data };
	return CUDA_SUCCESS;
}

CUresult shim_graph_node_get_batch(
	CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS told = {};
	const Vgpu__VgpuGraphNodeReply *reply;
	struct params *kept;
	CUresult result;

	result = ask(handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, 0, &reply);
	if (result == CUDA_SUCCESS)
		result = take_detail(reply, &told.flags, sizeof(told.flags));
	if (result != CUDA_SUCCESS)
		return result;
	told.ctx = (CUcontext)(uintptr_t)reply->node_context;
	told.count = reply->n_params / sizeof(*told.paramArray);
	kept = find_params(handle);
	if (!kept)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = take_params(handle, reply, kept);
	if (result != CUDA_SUCCESS)
		return result;
	told.paramArray = (CUstreamBatchMemOpParams *)kept->block;
	*params = told;
	return CUDA_SUCCESS;
}
