/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches and calls on functions
 *
 * Parameters travel as the one packed block that a kernel sees, and are given to the
 * driver as such (CU_LAUNCH_PARAM_BUFFER_*). The driver reads as many bytes as the
 * kernel has, so a block of another size is refused.
 */

#include <string.h>

#include "g-handlers.h"
#include "vgpu/launch.h"
#include "worker/call.h"
#include "worker/kernel.h"
#include "worker/session.h"

/* CUDA knows fewer than 20 launch attributes, and each may be given once. */
#define ATTRIBUTES_MAX 32u

struct launch {
	struct kernel *kernel;
	CUfunction function; /* the driver's, read once */
	void *stream;
	struct vgpu_launch_dims dims;
	/* What the driver is given, pointing at what follows. */
	void *extra[5];
	void *params;
	size_t params_size;
};

/* The parameter block as the driver may read it. */
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
	launch->params = params->data;
	launch->params_size = params->len;
	if (result == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	if (result != CUDA_ERROR_NOT_SUPPORTED)
		return result;
	/* The size is not known: whatever the driver reads shall be there. */
	launch->params = call_alloc(call, VGPU_LAUNCH_PARAMS_MAX);
	if (!launch->params)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(launch->params, params->data, params->len);
	return CUDA_SUCCESS;
}

/*
 * The function and its parameters. A lane may unload the module meanwhile and the entry
 * be another kernel's: what was read is of one kernel if the handle names the entry
 * afterwards, too.
 */
static CUresult take_function(struct call *call, struct launch *launch, uint64_t function,
	const ProtobufCBinaryData *params)
{
	struct object *object, *later;
	CUresult result;

	result = object_entry(call, VGPU_HANDLE_FUNCTION, function, &object);
	if (result != CUDA_SUCCESS)
		return result;
	launch->kernel = (struct kernel *)object;
	launch->function = __atomic_load_n(&object->driver, __ATOMIC_RELAXED);
	result = take_params(call, launch, params);
	if (result != CUDA_SUCCESS)
		return result;
	/* Partner: the entry's generation, withdrawn before it holds anything else. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return object_entry(call, VGPU_HANDLE_FUNCTION, function, &later);
}

static CUresult prepare(struct call *call, struct launch *launch, uint64_t function,
	uint64_t stream, const ProtobufCBinaryData *dims,
	const ProtobufCBinaryData *params)
{
	CUresult result;

	result = object_get(call, VGPU_HANDLE_STREAM, stream, false, &launch->stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (dims->len != sizeof(launch->dims))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&launch->dims, dims->data, sizeof(launch->dims));
	if (launch->dims.flags & ~_VGPU_LAUNCH_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
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

static CUresult launch_with(struct call *call, struct launch *launch,
	CUlaunchAttribute *attributes, unsigned int n_attributes)
{
	const struct vgpu_launch_dims *dims = &launch->dims;
	CUlaunchConfig config = {
		.gridDimX = dims->grid[0],
		.gridDimY = dims->grid[1],
		.gridDimZ = dims->grid[2],
		.blockDimX = dims->block[0],
		.blockDimY = dims->block[1],
		.blockDimZ = dims->block[2],
		.sharedMemBytes = dims->shared_bytes,
		.hStream = launch->stream,
		.attrs = attributes,
		.numAttrs = n_attributes,
	};

	if (!call->driver->cuLaunchKernelEx)
		return CUDA_ERROR_NOT_SUPPORTED;
	return call->driver->cuLaunchKernelEx(&config, launch->function,
		NULL, launch->params_size ? launch->extra : NULL);
}

static CUresult launch_plain(struct call *call, struct launch *launch)
{
	CUlaunchAttribute cooperative = {
		.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
		.value.cooperative = 1,
	};
	const struct vgpu_launch_dims *dims = &launch->dims;

	if (dims->flags & VGPU_LAUNCH_COOPERATIVE)
		return launch_with(call, launch, &cooperative, 1);
	return call->driver->cuLaunchKernel(launch->function, dims->grid[0],
		dims->grid[1], dims->grid[2], dims->block[0], dims->block[1],
		dims->block[2], dims->shared_bytes, launch->stream, NULL,
		launch->params_size ? launch->extra : NULL);
}

static CUresult count_launch(struct call *call, CUresult result)
{
	if (result == CUDA_SUCCESS)
		session_count(call->session, launches, 1);
	return result;
}

CUresult handle_cuLaunchKernel(struct call *call,
	const Vgpu__CuLaunchKernelRequest *request, Vgpu__CuLaunchKernelReply *reply)
{
	struct launch launch;
	CUresult result;

	result = prepare(call, &launch, request->f, request->h_stream, &request->dims,
		&request->params);
	if (result == CUDA_SUCCESS)
		result = launch_plain(call, &launch);
	return count_launch(call, result);
}

/* Attributes that are plain numbers. Others hold handles and addresses of the guest. */
static bool is_plain(CUlaunchAttributeID id)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return true;
	default:
		return false;
	}
}

static CUresult take_attributes(const ProtobufCBinaryData *bytes,
	CUlaunchAttribute *attributes, unsigned int *n_attributesp)
{
	unsigned int i, n = bytes->len / sizeof(*attributes);

	if (bytes->len % sizeof(*attributes) || n > ATTRIBUTES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (n)
		memcpy(attributes, bytes->data, bytes->len);
	for (i = 0; i < n; i++)
		if (!is_plain(attributes[i].id))
			return CUDA_ERROR_NOT_SUPPORTED;
	*n_attributesp = n;
	return CUDA_SUCCESS;
}

CUresult handle_cuLaunchKernelEx(struct call *call,
	const Vgpu__CuLaunchKernelExRequest *request, Vgpu__CuLaunchKernelExReply *reply)
{
	CUlaunchAttribute attributes[ATTRIBUTES_MAX];
	unsigned int n_attributes;
	struct launch launch;
	CUresult result;

	result = prepare(call, &launch, request->f, request->h_stream, &request->dims,
		&request->params);
	if (result == CUDA_SUCCESS)
		result = take_attributes(&request->attributes, attributes, &n_attributes);
	if (result == CUDA_SUCCESS)
		result = n_attributes
				 ? launch_with(call, &launch, attributes, n_attributes)
				 : launch_plain(call, &launch);
	return count_launch(call, result);
}

CUresult handle_cuFuncGetModule(struct call *call,
	const Vgpu__CuFuncGetModuleRequest *request, Vgpu__CuFuncGetModuleReply *reply)
{
	struct object *object;
	CUresult result;
	CUmodule module;

	if (!call->driver->cuFuncGetModule)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_entry(call, VGPU_HANDLE_FUNCTION, request->hfunc, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuFuncGetModule(&module, object->driver);
	/* One that was loaded as a module has its entry, and keeps it; any other is its
	 * library's, as the function is. */
	return result == CUDA_SUCCESS ? object_add_child(call, VGPU_HANDLE_MODULE, module,
						object->parent, &reply->hmod)
				      : result;
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
