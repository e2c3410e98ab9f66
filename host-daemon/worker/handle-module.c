/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on modules
 */

#include "g-handlers.h"
#include "worker/call.h"
#include "worker/images.h"
#include "worker/session.h"

static CUresult load(struct call *call, struct images *images, uint64_t *handlep)
{
	CUresult result;
	CUmodule module;

	result = call->driver->cuModuleLoadDataEx(&module, images->code,
		images->n_options, images->options, images->values);
	if (result != CUDA_SUCCESS)
		return result;
	result = managed_register(call);
	if (result == CUDA_SUCCESS)
		result = object_add(call, VGPU_HANDLE_MODULE, module, handlep);
	if (result != CUDA_SUCCESS)
		call->driver->cuModuleUnload(module);
	else
		images_keep(call, images, VGPU_HANDLE_MODULE, *handlep);
	return result;
}

CUresult handle_cuModuleLoadDataEx(struct call *call,
	const Vgpu__CuModuleLoadDataExRequest *request,
	Vgpu__CuModuleLoadDataExReply *reply)
{
	struct images *images = call_alloc(call, sizeof(*images));
	CUresult result;

	if (!images)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = images_take(call, images, request->images, request->n_images,
		request->image_sizes, request->n_image_sizes);
	if (result == CUDA_SUCCESS)
		result = images_take_options(images, request->jit_options,
			request->n_jit_options, request->jit_values,
			request->n_jit_values);
	if (result == CUDA_SUCCESS)
		result = load(call, images, &reply->module);
	reply->wall_time = images_wall_time(images);
	reply->info_log = images_log(images->info_log);
	reply->error_log = images_log(images->error_log);
	images_release(call, images);
	return result;
}

CUresult handle_cuModuleUnload(struct call *call,
	const Vgpu__CuModuleUnloadRequest *request, Vgpu__CuModuleUnloadReply *reply)
{
	struct object *object;
	CUresult result;
	void *module;

	result = object_entry(call, VGPU_HANDLE_MODULE, request->hmod, &object);
	/* The module of a library goes with the library only. */
	if (result == CUDA_SUCCESS && object->parent)
		return CUDA_ERROR_NOT_PERMITTED;
	if (result != CUDA_SUCCESS)
		return result;
	/* First the children: the entry's next object may have some at once. */
	object_forget_children(call, object);
	result = object_take(call, VGPU_HANDLE_MODULE, request->hmod, &module);
	if (result != CUDA_SUCCESS)
		return result;
	return call->driver->cuModuleUnload(module);
}

CUresult handle_cuModuleGetFunction(struct call *call,
	const Vgpu__CuModuleGetFunctionRequest *request,
	Vgpu__CuModuleGetFunctionReply *reply)
{
	struct object *object;
	CUfunction function;
	CUresult result;

	result = object_entry(call, VGPU_HANDLE_MODULE, request->hmod, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuModuleGetFunction(
			&function, object->driver, request->name);
	return result == CUDA_SUCCESS ? object_add_child(call, VGPU_HANDLE_FUNCTION,
						function, object, &reply->hfunc)
				      : result;
}

CUresult handle_cuModuleGetGlobal_v2(struct call *call,
	const Vgpu__CuModuleGetGlobalV2Request *request,
	Vgpu__CuModuleGetGlobalV2Reply *reply)
{
	struct managed_run run;
	CUdeviceptr address = 0;
	struct object *object;
	size_t size = 0;
	CUresult result;

	result = object_entry(call, VGPU_HANDLE_MODULE, request->hmod, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuModuleGetGlobal_v2(
			&address, &size, object->driver, request->name);
	if (result != CUDA_SUCCESS)
		return result;
	reply->dptr = address;
	reply->bytes = size;
	if (managed_find(call->session, address, size, &run)) {
		reply->first_extent = run.first;
		reply->n_extents = run.n_extents;
		return CUDA_SUCCESS;
	}
	return device_memory_publish_global(call, address, size, object);
}
