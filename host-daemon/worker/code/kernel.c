/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels: their parameters, attributes and names
 */

#include <assert.h>
#include <string.h>

#include "vgpu/checked.h"
#include "worker/base/call.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/code/kernel.h"

static bool is_kernel(struct call *call, const struct kernel *kernel)
{
	struct object_table *table = &call->session->objects[VGPU_HANDLE_KERNEL];

	return object_table_find(table, object_handle(table, &kernel->object)) ==
	       &kernel->object;
}

CUresult kernel_param(struct call *call, const struct kernel *kernel, size_t index,
	size_t *offsetp, size_t *sizep)
{
	const struct vgpu_driver *driver = call->driver;

	if (is_kernel(call, kernel)) {
		if (!driver->cuKernelGetParamInfo)
			return CUDA_ERROR_NOT_SUPPORTED;
		return driver->cuKernelGetParamInfo(
			kernel->object.driver, index, offsetp, sizep);
	}
	if (!driver->cuFuncGetParamInfo)
		return CUDA_ERROR_NOT_SUPPORTED;
	return driver->cuFuncGetParamInfo(kernel->object.driver, index, offsetp, sizep);
}

/*
 * Iterates over all parameters; those from `first` on are returned in the reply, if there
 * is one.
 */
static CUresult walk(struct call *call, struct kernel *kernel, uint32_t first,
	Vgpu__VgpuFunctionInfoReply *reply, uint32_t *n_paramsp, uint32_t *param_sizep)
{
	uint64_t end = 0, behind;
	size_t offset, size;
	CUresult result;
	uint32_t i;

	for (i = 0; i < KERNEL_PARAMS_MAX; i++) {
		result = kernel_param(call, kernel, i, &offset, &size);
		if (result == CUDA_ERROR_INVALID_VALUE)
			break;
		if (result != CUDA_SUCCESS)
			return result;
		if (!vgpu_add_u64(offset, size, &behind) || behind > KERNEL_PARAMS_MAX)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (behind > end)
			end = behind;
		if (!reply || i < first || reply->n_offsets == KERNEL_INFO_MAX)
			continue;
		reply->offsets[reply->n_offsets++] = offset;
		reply->sizes[reply->n_sizes++] = size;
	}
	*n_paramsp = i;
	*param_sizep = end;
	return CUDA_SUCCESS;
}

CUresult kernel_param_size(struct call *call, struct kernel *kernel, uint32_t *sizep)
{
	uint32_t n_params, size;
	CUresult result;

	/* Partner: the store below, on another thread. */
	if (__atomic_load_n(&kernel->is_known, __ATOMIC_ACQUIRE)) {
		*sizep = kernel->param_size;
		return CUDA_SUCCESS;
	}
	result = walk(call, kernel, 0, NULL, &n_params, &size);
	if (result != CUDA_SUCCESS)
		return result;
	kernel->param_size = size;
	__atomic_store_n(&kernel->is_known, true, __ATOMIC_RELEASE);
	*sizep = size;
	return CUDA_SUCCESS;
}

/* Whether launches depend on the grid, which is made of clusters then. */
static bool has_clusters(struct call *call, const struct kernel *kernel)
{
	const struct vgpu_driver *driver = call->driver;
	int width = 0;

	/* Every driver takes a kernel for its function. */
	return driver->cuFuncGetAttribute &&
	       driver->cuFuncGetAttribute(&width,
		       CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
		       kernel->object.driver) == CUDA_SUCCESS &&
	       width > 0;
}

CUresult kernel_describe(struct call *call, const Vgpu__VgpuFunctionInfoRequest *request,
	Vgpu__VgpuFunctionInfoReply *reply)
{
	struct object *object;
	CUresult result;

	result = object_find(call, VGPU_HANDLE_FUNCTION, request->function, &object);
	if (result != CUDA_SUCCESS)
		return result;
	reply->has_clusters = has_clusters(call, (struct kernel *)object);
	reply->offsets = call_alloc(call, KERNEL_INFO_MAX * sizeof(*reply->offsets));
	reply->sizes = call_alloc(call, KERNEL_INFO_MAX * sizeof(*reply->sizes));
	if (!reply->offsets || !reply->sizes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return walk(call, (struct kernel *)object, request->first, reply,
		&reply->n_params, &reply->param_bytes);
}

static CUresult ask_attribute(struct call *call,
	const Vgpu__VgpuFunctionAttributesRequest *request, const struct object *object,
	int attribute, int *valuep)
{
	const struct vgpu_driver *driver = call->driver;

	if (request->is_of_device && driver->cuKernelGetAttribute)
		return driver->cuKernelGetAttribute(
			valuep, attribute, object->driver, request->device);
	if (!request->is_of_device && driver->cuFuncGetAttribute)
		return driver->cuFuncGetAttribute(valuep, attribute, object->driver);
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult kernel_attributes(struct call *call,
	const Vgpu__VgpuFunctionAttributesRequest *request,
	Vgpu__VgpuFunctionAttributesReply *reply)
{
	enum vgpu_handle_kind kind =
		request->is_of_device ? VGPU_HANDLE_KERNEL : VGPU_HANDLE_FUNCTION;
	struct object *object;
	CUresult result;
	int value;

	static_assert(CU_FUNC_ATTRIBUTE_MAX <= KERNEL_ATTRIBUTES_MAX, "a bit each");
	result = object_find(call, kind, request->function, &object);
	if (result != CUDA_SUCCESS)
		return result;
	reply->attributes =
		call_alloc(call, KERNEL_ATTRIBUTES_MAX * sizeof(*reply->attributes));
	if (!reply->attributes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	reply->n_attributes = CU_FUNC_ATTRIBUTE_MAX;
	for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; i++) {
		if (ask_attribute(call, request, object, i, &value) != CUDA_SUCCESS)
			continue;
		reply->attributes[i] = value;
		reply->known |= 1u << i;
	}
	return CUDA_SUCCESS;
}

CUresult kernel_list_prepare(struct call *call, unsigned int *np, unsigned int wanted,
	void ***objectsp, uint64_t **handlesp)
{
	if (*np > wanted)
		*np = wanted;
	if (*np > OBJECTS_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*objectsp = call_alloc(call, (*np + 1) * sizeof(**objectsp));
	*handlesp = call_alloc(call, KERNEL_LIST_MAX * sizeof(**handlesp));
	return *objectsp && *handlesp ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult kernel_list(struct call *call, enum vgpu_handle_kind kind, void **objects,
	unsigned int n, unsigned int first, const struct object *of, uint64_t handle,
	uint64_t *handles, size_t *n_handlesp)
{
	CUresult result = CUDA_SUCCESS;
	size_t n_handles = 0;

	for (unsigned int i = first;
		i < n && n_handles < KERNEL_LIST_MAX && result == CUDA_SUCCESS; i++)
		result = object_add_part(
			call, kind, objects[i], of, handle, &handles[n_handles++]);
	if (result == CUDA_SUCCESS)
		*n_handlesp = n_handles;
	return result;
}

CUresult kernel_name(struct call *call, const char *name, char **namep)
{
	size_t size = strlen(name) + 1;

	if (size > KERNEL_NAME_MAX)
		return CUDA_ERROR_NOT_SUPPORTED;
	*namep = call_alloc(call, size);
	if (!*namep)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(*namep, name, size);
	return CUDA_SUCCESS;
}
