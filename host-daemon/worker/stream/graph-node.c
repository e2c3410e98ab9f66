/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of graphs, translated from the guest's parameters to the driver's
 */

#include <string.h>

#include "vgpu/checked.h"
#include "vgpu/launch.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/code/kernel.h"
#include "worker/memory/access.h"
#include "worker/memory/arena.h"
#include "worker/memory/array.h"
#include "worker/stream/functions.h"
#include "worker/stream/graph-node.h"
#include "worker/stream/graph.h"
#include "worker/stream/memop.h"

static CUresult take_detail(
	const struct graph_node_description *given, void *to, size_t size)
{
	if (given->detail.len != size)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(to, given->detail.data, size);
	return CUDA_SUCCESS;
}

/*
 * Kernels
 */

static CUresult take_params(struct call *call, const struct graph_node_description *given,
	struct kernel *kernel, struct graph_node *node)
{
	CUresult result;
	uint32_t size;
	void *block;

	result = kernel_param_size(call, kernel, &size);
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		size = VGPU_LAUNCH_PARAMS_MAX;
	else if (result != CUDA_SUCCESS)
		return result;
	else if (given->params.len != size)
		return CUDA_ERROR_INVALID_VALUE;
	if (given->params.len > size)
		return CUDA_ERROR_INVALID_VALUE;
	/* If the size is unknown, provide as much as the driver may read. */
	block = call_alloc(call, size + 1);
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (given->params.len)
		memcpy(block, given->params.data, given->params.len);
	node->params_size = given->params.len;
	node->extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
	node->extra[1] = block;
	node->extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
	node->extra[3] = &node->params_size;
	node->extra[4] = CU_LAUNCH_PARAM_END;
	if (size)
		node->kernel.extra = node->extra;
	return CUDA_SUCCESS;
}

static CUresult take_kernel(struct call *call, const struct graph_node_description *given,
	struct graph_node *node)
{
	uint64_t handle = given->function ? given->function : given->kernel;
	struct vgpu_launch_dims dims;
	struct object *object;
	CUresult result;
	void *kernel = NULL;

	result = take_detail(given, &dims, sizeof(dims));
	if (result == CUDA_SUCCESS)
		result = object_find(call, VGPU_HANDLE_FUNCTION, handle, &object);
	if (result == CUDA_SUCCESS && given->kernel)
		result = object_get(
			call, VGPU_HANDLE_KERNEL, given->kernel, false, &kernel);
	if (result != CUDA_SUCCESS)
		return result;
	node->kernel = (CUDA_KERNEL_NODE_PARAMS){
		.func = given->function ? object->driver : NULL,
		.gridDimX = dims.axis[0].grid,
		.gridDimY = dims.axis[1].grid,
		.gridDimZ = dims.axis[2].grid,
		.blockDimX = dims.axis[0].block,
		.blockDimY = dims.axis[1].block,
		.blockDimZ = dims.axis[2].block,
		.sharedMemBytes = dims.shared_bytes,
		.kern = kernel,
		.ctx = node->context,
	};
	return take_params(call, given, (struct kernel *)object, node);
}

/*
 * Copies
 */

/* One side as the structure of the API describes it; fields that its type does not use
 * are ignored. */
struct side {
	CUmemorytype type;
	uint64_t host;
	uint64_t device;
	uint64_t array;
	uint64_t x, y, z, lod, pitch, rows;
};

#define SIDE(_copy, _prefix)                                                             \
	{                                                                                \
		.type = (_copy)->_prefix##MemoryType,                                    \
		.host = (uintptr_t)(_copy)->_prefix##Host,                               \
		.device = (_copy)->_prefix##Device,                                      \
		.array = (uintptr_t)(_copy)->_prefix##Array,                             \
		.x = (_copy)->_prefix##XInBytes, .y = (_copy)->_prefix##Y,               \
		.z = (_copy)->_prefix##Z, .lod = (_copy)->_prefix##LOD,                  \
		.pitch = (_copy)->_prefix##Pitch, .rows = (_copy)->_prefix##Height,      \
	}

#define SET_SIDE(_copy, _prefix, _side)                                                  \
	do {                                                                             \
		(_copy)->_prefix##MemoryType = (_side)->type;                            \
		(_copy)->_prefix##Host = (void *)(uintptr_t)(_side)->host;               \
		(_copy)->_prefix##Device = (_side)->device;                              \
		(_copy)->_prefix##Array = (CUarray)(uintptr_t)(_side)->array;            \
		(_copy)->_prefix##XInBytes = (_side)->x;                                 \
		(_copy)->_prefix##Y = (_side)->y;                                        \
		(_copy)->_prefix##Z = (_side)->z;                                        \
		(_copy)->_prefix##Pitch = (_side)->pitch;                                \
		(_copy)->_prefix##Height = (_side)->rows;                                \
	} while (0)

/* Linear memory: the first byte that is copied, and the total size. A pitch or a height
 * of 0 means rows and layers without gaps. */
static CUresult check_memory(struct call *call, const struct side *side, uint64_t base,
	const CUDA_MEMCPY3D *copy)
{
	struct access_side memory = {
		.pitch = side->pitch ? side->pitch : copy->WidthInBytes,
		.rows = side->rows ? side->rows : copy->Height,
	};
	uint64_t row, offset;

	if (!vgpu_mul_u64(side->z, memory.rows, &row) ||
		!vgpu_add_u64(row, side->y, &row) ||
		!vgpu_mul_u64(row, memory.pitch, &offset) ||
		!vgpu_add_u64(offset, side->x, &offset) ||
		!vgpu_add_u64(base, offset, &memory.address))
		return CUDA_ERROR_INVALID_VALUE;
	if (side->type == CU_MEMORYTYPE_HOST &&
		!arena_covers(call->session, memory.address, 1))
		return CUDA_ERROR_INVALID_VALUE;
	return access_check_side(
		call, &memory, copy->WidthInBytes, copy->Height, copy->Depth);
}

static CUresult check_array(
	struct call *call, struct side *side, const CUDA_MEMCPY3D *copy)
{
	const struct vgpu_array_box box = {
		.width = copy->WidthInBytes,
		.height = copy->Height,
		.depth = copy->Depth,
	};
	const struct vgpu_array_side place = { .x = side->x, .y = side->y, .z = side->z };
	CUarray array = NULL;
	CUresult result;

	result = array_check_side(call, side->array, &place, &box, &array);
	side->array = (uintptr_t)array;
	side->pitch = 0;
	side->rows = 0;
	return result;
}

static CUresult check_side(
	struct call *call, struct side *side, const CUDA_MEMCPY3D *copy)
{
	uint64_t base;

	if (side->lod)
		return CUDA_ERROR_INVALID_VALUE;
	switch (side->type) {
	case CU_MEMORYTYPE_HOST:
		base = side->host;
		side->device = 0;
		break;
	case CU_MEMORYTYPE_DEVICE:
	case CU_MEMORYTYPE_UNIFIED:
		base = side->device;
		side->host = 0;
		break;
	case CU_MEMORYTYPE_ARRAY:
		side->host = 0;
		side->device = 0;
		return check_array(call, side, copy);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	side->array = 0;
	return check_memory(call, side, base, copy);
}

static CUresult take_copy(struct call *call, const struct graph_node_description *given,
	struct graph_node *node)
{
	CUDA_MEMCPY3D copy;
	CUresult result;

	result = take_detail(given, &copy, sizeof(copy));
	if (result == CUDA_SUCCESS) {
		struct side to = SIDE(&copy, dst), from = SIDE(&copy, src);

		if (copy.reserved0 || copy.reserved1)
			return CUDA_ERROR_INVALID_VALUE;
		result = check_side(call, &to, &copy);
		if (result == CUDA_SUCCESS)
			result = check_side(call, &from, &copy);
		node->copy = (CUDA_MEMCPY3D){
			.WidthInBytes = copy.WidthInBytes,
			.Height = copy.Height,
			.Depth = copy.Depth,
		};
		SET_SIDE(&node->copy, dst, &to);
		SET_SIDE(&node->copy, src, &from);
	}
	return result;
}

/*
 * Fills
 */

static CUresult take_fill(struct call *call, const struct graph_node_description *given,
	struct graph_node *node)
{
	struct access_side side;
	CUresult result;
	uint64_t width;

	result = take_detail(given, &node->fill, sizeof(node->fill));
	if (result != CUDA_SUCCESS)
		return result;
	/* CUDA has elements of 1, 2 and 4 bytes. With size 0 the checked range would be
	 * empty, but not the driver's. */
	if (!node->fill.elementSize ||
		!vgpu_mul_u64(node->fill.width, node->fill.elementSize, &width))
		return CUDA_ERROR_INVALID_VALUE;
	side = (struct access_side){
		.address = node->fill.dst,
		.pitch = node->fill.pitch,
		.rows = node->fill.height,
	};
	return access_check_side(call, &side, width, node->fill.height, 1);
}

/*
 * All kinds
 */

/* The context of a node. Retaining it may have changed the current context. */
static CUresult take_context(struct call *call, uint64_t handle, CUcontext *contextp)
{
	CUresult result;
	void *context;

	result = object_get(call, VGPU_HANDLE_CONTEXT, handle, true, &context);
	if (result != CUDA_SUCCESS)
		return result;
	*contextp = context;
	context_left(call->runner);
	return context_enter(call->session, call->runner, call->current);
}

static CUresult take_event(struct call *call, uint64_t handle, CUevent *eventp)
{
	CUresult result;
	void *event;

	result = object_get(call, VGPU_HANDLE_EVENT, handle, false, &event);
	if (result == CUDA_SUCCESS)
		*eventp = event;
	return result;
}

static CUresult take_child(struct call *call, const struct graph_node_description *given,
	struct graph_node *node)
{
	unsigned int ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
	CUresult result = CUDA_SUCCESS;
	void *child;

	if (given->detail.len)
		result = take_detail(given, &ownership, sizeof(ownership));
	if (result == CUDA_SUCCESS && ownership > CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = object_get(call, VGPU_HANDLE_GRAPH, given->child, false, &child);
	if (result != CUDA_SUCCESS)
		return result;
	node->child = child;
	node->ownership = (CUgraphChildGraphNodeOwnership)ownership;
	return CUDA_SUCCESS;
}

static CUresult take_host(struct call *call, uint64_t cookie, CUDA_HOST_NODE_PARAMS *host)
{
	host->fn = function_run;
	return function_add(call->session, cookie, &host->userData);
}

static CUresult take_batch(struct call *call, const struct graph_node_description *given,
	struct graph_node *node)
{
	CUresult result;

	node->batch.ctx = node->context;
	result = take_detail(given, &node->batch.flags, sizeof(node->batch.flags));
	return result == CUDA_SUCCESS
		       ? memops_take(call, &given->params, &node->batch.paramArray,
				 &node->batch.count)
		       : result;
}

CUresult graph_node_take_conditional(struct call *call,
	const struct graph_node_description *given, const struct object *graph,
	struct graph_node *node)
{
	struct vgpu_graph_conditional conditional = {};
	CUresult result;

	*node = (struct graph_node){ .kind = given->kind };
	result = take_detail(given, &conditional, sizeof(conditional));
	if (result == CUDA_SUCCESS &&
		(!conditional.n_bodies || conditional.n_bodies > VGPU_GRAPH_BODIES_MAX ||
			conditional.type < CU_GRAPH_COND_TYPE_IF ||
			conditional.type > CU_GRAPH_COND_TYPE_SWITCH ||
			!graph_has_condition(call, conditional.handle, graph)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && given->context)
		result = take_context(call, given->context, &node->context);
	node->conditional = (CUDA_CONDITIONAL_NODE_PARAMS){
		.handle = conditional.handle,
		.type = conditional.type,
		.size = conditional.n_bodies,
		.ctx = node->context,
	};
	return result;
}

void graph_node_drop(struct call *call, const struct graph_node *node)
{
	if (node->kind == CU_GRAPH_NODE_TYPE_HOST)
		function_withdraw(call->session, node->host.userData);
}

CUresult graph_node_take(struct call *call, const struct graph_node_description *given,
	struct graph_node *node)
{
	CUresult result = CUDA_SUCCESS;

	*node = (struct graph_node){ .kind = given->kind };
	if (given->context)
		result = take_context(call, given->context, &node->context);
	if (result != CUDA_SUCCESS)
		return result;
	switch (given->kind) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return take_kernel(call, given, node);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return take_copy(call, given, node);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return take_fill(call, given, node);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return take_event(call, given->event, &node->event);
	case CU_GRAPH_NODE_TYPE_HOST:
		return take_host(call, given->cookie, &node->host);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return take_child(call, given, node);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return take_batch(call, given, node);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}
