/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches and calls on functions
 *
 * Parameters are sent as the one packed block that a kernel reads, and passed to the
 * driver in that form (CU_LAUNCH_PARAM_BUFFER_*). The driver reads as many bytes as the
 * kernel has parameters, so a block of another size is refused.
 */

#include <string.h>

#include "driver/driver.h"
#include "g-handlers.h"
#include "vgpu/launch-attribute.h"
#include "vgpu/launch.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/scratch.h"
#include "worker/code/kernel.h"

struct launch {
	struct kernel *kernel;
	CUfunction function; /* the driver's, read once */
	void *stream;
	struct vgpu_launch_dims dims;
	/* The driver's parameters, which point to the fields below. */
	void *extra[5];
	void *params;
	size_t params_size;
};

/* The given attributes, and one that represents the flags. */
struct attributes {
	CUlaunchAttribute list[VGPU_LAUNCH_ATTRIBUTES_MAX + 1];
	unsigned int n;
};

/* A copy of the parameter block for the driver. */
static CUresult take_params(
	struct call *call, struct launch *launch, const ProtobufCBinaryData *params)
{
	CUresult result;
	uint32_t size;

	result = kernel_param_size(call, launch->kernel, &size);
	if (result == CUDA_SUCCESS && params->len != size)
		return CUDA_ERROR_INVALID_VALUE;
	if (params->len > VGPU_LAUNCH_PARAMS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_SUPPORTED)
		return result;
	/* If the size is unknown, provide as much as the driver may read. Always copy:
	 * parameters in the message are not aligned. */
	launch->params = result == CUDA_SUCCESS
				 ? scratch_alloc(&call->runner->scratch, params->len)
				 : call_alloc(call, VGPU_LAUNCH_PARAMS_MAX);
	if (!launch->params)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (params->len)
		memcpy(launch->params, params->data, params->len);
	launch->params_size = params->len;
	return CUDA_SUCCESS;
}

/*
 * The function and its parameters. A lane may unload the module concurrently, and the
 * entry may be reused for another kernel. If the entry still has the handle afterwards,
 * all values belong to one kernel.
 */
static CUresult take_function(struct call *call, struct launch *launch, uint64_t function,
	const ProtobufCBinaryData *params)
{
	struct object *object;
	CUresult result;

	result = object_find(call, VGPU_HANDLE_FUNCTION, function, &object);
	if (result != CUDA_SUCCESS)
		return result;
	launch->kernel = (struct kernel *)object;
	launch->function = __atomic_load_n(&object->driver, __ATOMIC_RELAXED);
	result = take_params(call, launch, params);
	if (result != CUDA_SUCCESS)
		return result;
	/* Partner: withdraw(), which clears the generation before the entry is reused. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return object_is(object, function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult take_dims(struct vgpu_launch_dims *dims, const ProtobufCBinaryData *bytes)
{
	if (!vgpu_launch_dims_read(dims, bytes->data, bytes->len))
		return CUDA_ERROR_INVALID_VALUE;
	return dims->flags & ~_VGPU_LAUNCH_FLAGS ? CUDA_ERROR_INVALID_VALUE
						 : CUDA_SUCCESS;
}

static CUresult prepare(struct call *call, struct launch *launch, uint64_t function,
	uint64_t stream, const ProtobufCBinaryData *dims,
	const ProtobufCBinaryData *params)
{
	CUresult result;

	result = object_get(call, VGPU_HANDLE_STREAM, stream, false, &launch->stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = take_dims(&launch->dims, dims);
	if (result == CUDA_SUCCESS)
		result = take_function(call, launch, function, params);
	if (result != CUDA_SUCCESS)
		return result;
	launch->extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
	launch->extra[1] = launch->params;
	launch->extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
	launch->extra[3] = &launch->params_size;
	launch->extra[4] = CU_LAUNCH_PARAM_END;
	return CUDA_SUCCESS;
}

static CUlaunchConfig make_config(const struct vgpu_launch_dims *dims, void *stream,
	const struct attributes *attributes)
{
	return (CUlaunchConfig){
		.gridDimX = dims->axis[0].grid,
		.gridDimY = dims->axis[1].grid,
		.gridDimZ = dims->axis[2].grid,
		.blockDimX = dims->axis[0].block,
		.blockDimY = dims->axis[1].block,
		.blockDimZ = dims->axis[2].block,
		.sharedMemBytes = dims->shared_bytes,
		.hStream = stream,
		.attrs = (CUlaunchAttribute *)attributes->list,
		.numAttrs = attributes->n,
	};
}

static CUresult launch_with(
	struct call *call, struct launch *launch, const struct attributes *attributes)
{
	CUlaunchConfig config = make_config(&launch->dims, launch->stream, attributes);

	if (!call->driver->cuLaunchKernelEx)
		return CUDA_ERROR_NOT_SUPPORTED;
	return call->driver->cuLaunchKernelEx(&config, launch->function, NULL,
		launch->params_size ? launch->extra : NULL);
}

static void add_flags(struct attributes *attributes, uint32_t flags)
{
	if (flags & VGPU_LAUNCH_COOPERATIVE)
		attributes->list[attributes->n++] = (CUlaunchAttribute){
			.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
			.value.cooperative = 1,
		};
}

static CUresult launch_plain(struct call *call, struct launch *launch)
{
	const struct vgpu_launch_axis *axis = launch->dims.axis;

	return call->driver->cuLaunchKernel(launch->function, axis[0].grid, axis[1].grid,
		axis[2].grid, axis[0].block, axis[1].block, axis[2].block,
		launch->dims.shared_bytes, launch->stream, NULL,
		launch->params_size ? launch->extra : NULL);
}

static CUresult count_launch(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		call->runner->n_launches++;
	return result;
}

CUresult handle_cuLaunchKernel(struct call *call,
	const Vgpu__CuLaunchKernelRequest *request, Vgpu__CuLaunchKernelReply *reply)
{
	struct attributes attributes;
	struct launch launch;
	CUresult result;

	result = prepare(call, &launch, request->f, request->h_stream, &request->dims,
		&request->params);
	if (result == CUDA_SUCCESS) {
		attributes.n = 0;
		add_flags(&attributes, launch.dims.flags);
		result = attributes.n ? launch_with(call, &launch, &attributes)
				      : launch_plain(call, &launch);
	}
	return count_launch(call, result);
}

/* Translates the guest's values in an attribute. */
static CUresult translate_attribute(struct call *call, CUlaunchAttribute *attribute)
{
	CUevent *event = vgpu_launch_attribute_event(attribute);
	CUresult result;
	void *found;

	/* Devices report no access-policy windows: only an empty one is valid. */
	if (attribute->id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) {
		if (attribute->value.accessPolicyWindow.num_bytes)
			return CUDA_ERROR_INVALID_VALUE;
		attribute->id = CU_LAUNCH_ATTRIBUTE_IGNORE;
	}
	if (!event)
		return CUDA_SUCCESS;
	result = object_get(
		call, VGPU_HANDLE_EVENT, (uint64_t)(uintptr_t)*event, false, &found);
	if (result == CUDA_SUCCESS)
		*event = found;
	return result;
}

static CUresult take_attributes(struct call *call, const ProtobufCBinaryData *bytes,
	struct attributes *attributes)
{
	size_t n = bytes->len / sizeof(CUlaunchAttribute);
	CUresult result = CUDA_SUCCESS;
	CUlaunchAttribute given;

	attributes->n = 0;
	if (bytes->len % sizeof(given) || n > VGPU_LAUNCH_ATTRIBUTES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n && result == CUDA_SUCCESS; i++) {
		CUlaunchAttribute *taken = &attributes->list[attributes->n++];

		memcpy(&given, bytes->data + i * sizeof(given), sizeof(given));
		if (!vgpu_launch_attribute_copy(taken, &given))
			return CUDA_ERROR_INVALID_VALUE;
		result = translate_attribute(call, taken);
	}
	return result;
}

CUresult handle_cuLaunchKernelEx(struct call *call,
	const Vgpu__CuLaunchKernelExRequest *request, Vgpu__CuLaunchKernelExReply *reply)
{
	struct attributes attributes;
	struct launch launch;
	CUresult result;

	result = prepare(call, &launch, request->f, request->h_stream, &request->dims,
		&request->params);
	if (result == CUDA_SUCCESS)
		result = take_attributes(call, &request->attributes, &attributes);
	if (result == CUDA_SUCCESS) {
		add_flags(&attributes, launch.dims.flags);
		result = attributes.n ? launch_with(call, &launch, &attributes)
				      : launch_plain(call, &launch);
	}
	return count_launch(call, result);
}

/* A launch configuration for an occupancy query. */
struct question {
	struct attributes attributes;
	CUlaunchConfig config;
	void *function;
};

static CUresult take_question(struct call *call, struct question *question,
	uint64_t function, uint64_t stream, const ProtobufCBinaryData *dims_bytes,
	const ProtobufCBinaryData *attributes)
{
	struct vgpu_launch_dims dims;
	void *driver_stream;
	CUresult result;

	result = object_get(
		call, VGPU_HANDLE_FUNCTION, function, false, &question->function);
	if (result == CUDA_SUCCESS)
		result = object_get(
			call, VGPU_HANDLE_STREAM, stream, false, &driver_stream);
	if (result == CUDA_SUCCESS)
		result = take_dims(&dims, dims_bytes);
	if (result == CUDA_SUCCESS)
		result = take_attributes(call, attributes, &question->attributes);
	if (result != CUDA_SUCCESS)
		return result;
	add_flags(&question->attributes, dims.flags);
	question->config = make_config(&dims, driver_stream, &question->attributes);
	return CUDA_SUCCESS;
}

CUresult handle_cuOccupancyMaxActiveClusters(struct call *call,
	const Vgpu__CuOccupancyMaxActiveClustersRequest *request,
	Vgpu__CuOccupancyMaxActiveClustersReply *reply)
{
	struct question question;
	CUresult result;
	int n;

	if (!call->driver->cuOccupancyMaxActiveClusters)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = take_question(call, &question, request->func, request->h_stream,
		&request->dims, &request->attributes);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuOccupancyMaxActiveClusters(
			&n, question.function, &question.config);
	if (result == CUDA_SUCCESS)
		reply->num_clusters = n;
	return result;
}

CUresult handle_cuOccupancyMaxPotentialClusterSize(struct call *call,
	const Vgpu__CuOccupancyMaxPotentialClusterSizeRequest *request,
	Vgpu__CuOccupancyMaxPotentialClusterSizeReply *reply)
{
	struct question question;
	CUresult result;
	int size;

	if (!call->driver->cuOccupancyMaxPotentialClusterSize)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = take_question(call, &question, request->func, request->h_stream,
		&request->dims, &request->attributes);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuOccupancyMaxPotentialClusterSize(
			&size, question.function, &question.config);
	if (result == CUDA_SUCCESS)
		reply->cluster_size = size;
	return result;
}

CUresult handle_cuFuncGetModule(struct call *call,
	const Vgpu__CuFuncGetModuleRequest *request, Vgpu__CuFuncGetModuleReply *reply)
{
	struct object *object;
	CUresult result;
	CUmodule module;

	if (!call->driver->cuFuncGetModule)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_find(call, VGPU_HANDLE_FUNCTION, request->hfunc, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuFuncGetModule(&module, object->driver);
	/* A loaded module has an entry already, which it keeps; any other module is a
	 * child of the function's library. */
	if (result != CUDA_SUCCESS)
		return result;
	return object_add_child(
		call, VGPU_HANDLE_MODULE, module, object->parent, &reply->hmod);
}

CUresult handle_cuFuncGetName(struct call *call,
	const Vgpu__CuFuncGetNameRequest *request, Vgpu__CuFuncGetNameReply *reply)
{
	const char *name = NULL;
	CUresult result;
	void *function;

	if (!call->driver->cuFuncGetName)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_FUNCTION, request->hfunc, false, &function);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuFuncGetName(&name, function);
	return result == CUDA_SUCCESS ? kernel_name(call, name, &reply->function_name)
				      : result;
}
