/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of nodes of graphs
 *
 * The driver returns its functions, kernels, arrays, events and contexts, which are
 * translated to the guest's handles.
 */

#include <string.h>

#include "g-handlers.h"
#include "vgpu/checked.h"
#include "vgpu/graph.h"
#include "vgpu/launch-attribute.h"
#include "vgpu/launch.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/code/kernel.h"
#include "worker/stream/functions.h"

static uint64_t handle_of(struct object_table *table, const void *driver)
{
	uint64_t handle;

	return driver && object_table_search(table, driver, &handle) ? handle : 0;
}

static CUresult tell_detail(struct call *call, Vgpu__VgpuGraphNodeReply *reply,
	const void *detail, size_t size)
{
	reply->detail.data = call_alloc(call, size);
	if (!reply->detail.data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(reply->detail.data, detail, size);
	reply->detail.len = size;
	return CUDA_SUCCESS;
}

/*
 * Kernels
 */

/* The entry of a node's function, added here if the guest has no handle yet. */
static CUresult find_function(struct call *call, const CUDA_KERNEL_NODE_PARAMS *params,
	Vgpu__VgpuGraphNodeReply *reply, struct object **objectp)
{
	struct object_table *kernels = &call->session->objects[VGPU_HANDLE_KERNEL];
	const struct object *library = NULL;
	CUresult result = CUDA_SUCCESS;

	reply->kernel = handle_of(kernels, params->kern);
	reply->function = handle_of(kernels, params->func);
	if (reply->kernel)
		library = object_table_find(kernels, reply->kernel);
	if (!reply->function && params->func)
		result = object_add_child(call, VGPU_HANDLE_FUNCTION, params->func,
			library ? library->parent : NULL, &reply->function);
	if (result != CUDA_SUCCESS)
		return result;
	return object_find(call, VGPU_HANDLE_FUNCTION,
		reply->function ? reply->function : reply->kernel, objectp);
}

/* Copies the block of `extra`, limited to the kernel's parameters. */
static void copy_extra(void **extra, uint8_t *block, uint32_t size)
{
	const void *data = NULL;
	size_t given = 0;

	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			data = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			given = *(const size_t *)extra[1];
	}
	if (data)
		memcpy(block, data, given < size ? given : size);
}

static CUresult copy_params(struct call *call, const CUDA_KERNEL_NODE_PARAMS *params,
	struct kernel *kernel, uint8_t *block, uint32_t size)
{
	size_t offset, length;
	CUresult result;

	if (params->extra) {
		copy_extra(params->extra, block, size);
		return CUDA_SUCCESS;
	}
	for (uint32_t i = 0; params->kernelParams && i < size; i++) {
		result = kernel_param(call, kernel, i, &offset, &length);
		if (result == CUDA_ERROR_INVALID_VALUE)
			break;
		if (result != CUDA_SUCCESS)
			return result;
		/* The entry may have been reused concurrently for another kernel. */
		if (!vgpu_range_within(offset, length, 0, size))
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(block + offset, params->kernelParams[i], length);
	}
	return CUDA_SUCCESS;
}

/* A page of n_params bytes. */
static void tell_page(uint8_t *block, uint32_t first, Vgpu__VgpuGraphNodeReply *reply)
{
	uint32_t size = reply->n_params;

	if (first >= size)
		return;
	reply->params.data = block + first;
	reply->params.len = size - first < VGPU_GRAPH_PARAMS_PAGE
				    ? size - first
				    : VGPU_GRAPH_PARAMS_PAGE;
}

static CUresult tell_params(struct call *call, const CUDA_KERNEL_NODE_PARAMS *params,
	struct kernel *kernel, uint32_t first, Vgpu__VgpuGraphNodeReply *reply)
{
	CUresult result;
	uint8_t *block;
	uint32_t size;

	result = kernel_param_size(call, kernel, &size);
	if (result != CUDA_SUCCESS)
		return result;
	block = call_alloc(call, size + 1);
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = copy_params(call, params, kernel, block, size);
	reply->n_params = size;
	if (result == CUDA_SUCCESS)
		tell_page(block, first, reply);
	return result;
}

static CUresult tell_kernel(struct call *call, CUgraphNode node, uint32_t first,
	Vgpu__VgpuGraphNodeReply *reply)
{
	CUDA_KERNEL_NODE_PARAMS params = {};
	struct vgpu_launch_dims dims;
	struct object *object;
	CUresult result;

	if (!call->driver->cuGraphKernelNodeGetParams_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = call->driver->cuGraphKernelNodeGetParams_v2(node, &params);
	if (result == CUDA_SUCCESS)
		result = find_function(call, &params, reply, &object);
	if (result != CUDA_SUCCESS)
		return result;
	dims = (struct vgpu_launch_dims){
		.axis = { { params.gridDimX, params.blockDimX },
			{ params.gridDimY, params.blockDimY },
			{ params.gridDimZ, params.blockDimZ } },
		.shared_bytes = params.sharedMemBytes,
	};
	reply->node_context = handle_of(&call->session->contexts.table, params.ctx);
	result = tell_detail(call, reply, &dims, sizeof(dims));
	if (result != CUDA_SUCCESS)
		return result;
	return tell_params(call, &params, (struct kernel *)object, first, reply);
}

/*
 * Other kinds
 */

static CUresult tell_copy(
	struct call *call, CUgraphNode node, Vgpu__VgpuGraphNodeReply *reply)
{
	struct object_table *arrays = &call->session->objects[VGPU_HANDLE_ARRAY];
	CUDA_MEMCPY3D copy = {};
	CUresult result;

	if (!call->driver->cuGraphMemcpyNodeGetParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = call->driver->cuGraphMemcpyNodeGetParams(node, &copy);
	if (result != CUDA_SUCCESS)
		return result;
	copy.srcArray = (CUarray)(uintptr_t)handle_of(arrays, copy.srcArray);
	copy.dstArray = (CUarray)(uintptr_t)handle_of(arrays, copy.dstArray);
	return tell_detail(call, reply, &copy, sizeof(copy));
}

static CUresult tell_fill(
	struct call *call, CUgraphNode node, Vgpu__VgpuGraphNodeReply *reply)
{
	CUDA_MEMSET_NODE_PARAMS fill = {};
	CUresult result;

	if (!call->driver->cuGraphMemsetNodeGetParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = call->driver->cuGraphMemsetNodeGetParams(node, &fill);
	return result == CUDA_SUCCESS ? tell_detail(call, reply, &fill, sizeof(fill))
				      : result;
}

static CUresult tell_event(struct call *call, CUgraphNode node, CUgraphNodeType kind,
	Vgpu__VgpuGraphNodeReply *reply)
{
	const struct vgpu_driver *driver = call->driver;
	CUresult (*ask)(CUgraphNode, CUevent *) =
		kind == CU_GRAPH_NODE_TYPE_EVENT_RECORD
			? driver->cuGraphEventRecordNodeGetEvent
			: driver->cuGraphEventWaitNodeGetEvent;
	CUevent event = NULL;
	CUresult result;

	if (!ask)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = ask(node, &event);
	reply->event = handle_of(&call->session->objects[VGPU_HANDLE_EVENT], event);
	return result;
}

static CUresult tell_host(
	struct call *call, CUgraphNode node, Vgpu__VgpuGraphNodeReply *reply)
{
	CUDA_HOST_NODE_PARAMS host = {};
	CUresult result;

	if (!call->driver->cuGraphHostNodeGetParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = call->driver->cuGraphHostNodeGetParams(node, &host);
	if (result == CUDA_SUCCESS &&
		!function_find(call->session, host.userData, &reply->cookie))
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

static CUresult tell_batch(struct call *call, CUgraphNode node, uint32_t first,
	Vgpu__VgpuGraphNodeReply *reply)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {};
	CUresult result;
	uint8_t *ops;

	if (!call->driver->cuGraphBatchMemOpNodeGetParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = call->driver->cuGraphBatchMemOpNodeGetParams(node, &batch);
	if (result != CUDA_SUCCESS)
		return result;
	reply->node_context = handle_of(&call->session->contexts.table, batch.ctx);
	reply->n_params = batch.count * sizeof(*batch.paramArray);
	ops = call_alloc(call, reply->n_params + 1);
	if (!ops)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(ops, batch.paramArray, reply->n_params);
	tell_page(ops, first, reply);
	return tell_detail(call, reply, &batch.flags, sizeof(batch.flags));
}

CUresult handle_vgpuGraphNode(struct call *call,
	const Vgpu__VgpuGraphNodeRequest *request, Vgpu__VgpuGraphNodeReply *reply)
{
	CUgraphNodeType kind;
	CUresult result;
	void *node;

	if (!call->driver->cuGraphNodeGetType)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_GRAPH_NODE, request->node, false, &node);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuGraphNodeGetType(node, &kind);
	if (result != CUDA_SUCCESS)
		return result;
	reply->kind = kind;
	switch ((int)kind) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return tell_kernel(call, node, request->first, reply);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return tell_copy(call, node, reply);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return tell_fill(call, node, reply);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return tell_event(call, node, kind, reply);
	case CU_GRAPH_NODE_TYPE_HOST:
		return tell_host(call, node, reply);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return tell_batch(call, node, request->first, reply);
	default:
		return CUDA_SUCCESS;
	}
}

/*
 * Attributes of kernel nodes
 */

/* Events are invalid as attributes of nodes; other attributes may be unsupported. */
static CUresult check_attribute(int32_t id)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		return CUDA_ERROR_INVALID_VALUE;
	case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return vgpu_launch_attribute_size(id) ? CUDA_SUCCESS
						      : CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult handle_cuGraphKernelNodeGetAttribute(struct call *call,
	const Vgpu__CuGraphKernelNodeGetAttributeRequest *request,
	Vgpu__CuGraphKernelNodeGetAttributeReply *reply)
{
	CUkernelNodeAttrValue *value = call_alloc(call, sizeof(*value));
	CUresult result;
	void *node;

	if (!call->driver->cuGraphKernelNodeGetAttribute)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!value)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = object_get(call, VGPU_HANDLE_GRAPH_NODE, request->h_node, false, &node);
	if (result == CUDA_SUCCESS)
		result = check_attribute(request->attr);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuGraphKernelNodeGetAttribute(
			node, request->attr, value);
	reply->value.data = (uint8_t *)value;
	reply->value.len = sizeof(*value);
	return result;
}

CUresult handle_cuGraphKernelNodeSetAttribute(struct call *call,
	const Vgpu__CuGraphKernelNodeSetAttributeRequest *request,
	Vgpu__CuGraphKernelNodeSetAttributeReply *reply)
{
	CUlaunchAttribute given = { .id = request->attr }, taken;
	CUresult result;
	void *node;

	if (!call->driver->cuGraphKernelNodeSetAttribute)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_GRAPH_NODE, request->h_node, false, &node);
	if (result == CUDA_SUCCESS)
		result = check_attribute(request->attr);
	if (result != CUDA_SUCCESS)
		return result;
	if (request->value_bytes.len != sizeof(given.value))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&given.value, request->value_bytes.data, sizeof(given.value));
	vgpu_launch_attribute_copy(&taken, &given);
	/* Devices report no access-policy windows: only an empty one is valid. */
	if (request->attr == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW &&
		taken.value.accessPolicyWindow.num_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	return call->driver->cuGraphKernelNodeSetAttribute(
		node, request->attr, &taken.value);
}
