/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on libraries and kernels
 *
 * Both are context-free: they survive the reset of a context, but their modules and
 * functions in that context do not.
 */

#include "g-handlers.h"
#include "vgpu/cleanup.h"
#include "worker/base/call.h"
#include "worker/base/flight.h"
#include "worker/base/lookup.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/base/session.h"
#include "worker/code/code.h"
#include "worker/code/images.h"
#include "worker/code/kernel.h"
#include "worker/code/load.h"
#include "worker/handle/variable.h"
#include "worker/memory/managed.h"
#include "worker/memory/mirror.h"

/* Take the code first: after the unload the driver may reuse the handle. If the unload
 * fails, the code remains. */
static CUresult unload_library(struct call *call, CUlibrary library)
{
	struct code *code = code_take(call->session, library);
	CUresult result;

	lookups_await(call->session, library);
	mirror_forget(call->session, library);
	result = call->driver->cuLibraryUnload(library);
	if (result == CUDA_SUCCESS)
		code_free(call->session, code);
	else if (code)
		code_keep(call->session, code, library);
	return result;
}

/* The guest's library options are guarantees about its own image. The worker's copy stays
 * mapped, so the driver gets CU_LIBRARY_BINARY_IS_PRESERVED instead. */
static CUresult load_library(struct call *call, struct load *load, uint64_t *handlep)
{
	CUlibraryOption options[] = { CU_LIBRARY_BINARY_IS_PRESERVED };
	void *values[] = { (void *)(uintptr_t)1 };
	CUlibrary library;
	CUresult result;

	if (!call->driver->cuLibraryLoadData)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = call->driver->cuLibraryLoadData(&library, load->images.code->start,
		load->jit.options, load->jit.values, load->jit.n_options, options, values,
		1);
	if (result != CUDA_SUCCESS)
		return result;
	images_preserve(call, &load->images, library);
	result = managed_register(call);
	if (result == CUDA_SUCCESS)
		result = object_add(call, VGPU_HANDLE_LIBRARY, library, handlep);
	if (result != CUDA_SUCCESS)
		unload_library(call, library);
	return result;
}

CUresult handle_cuLibraryLoadData(struct call *call,
	const Vgpu__CuLibraryLoadDataRequest *request,
	Vgpu__CuLibraryLoadDataReply *reply)
{
	struct load *load;
	CUresult result;

	result = load_begin(call, &request->load, &load);
	if (result == CUDA_SUCCESS)
		result = load_library(call, load, &reply->library);
	return load_end(call, load, result, &reply->load_result);
}

CUresult handle_cuLibraryUnload(struct call *call,
	const Vgpu__CuLibraryUnloadRequest *request, Vgpu__CuLibraryUnloadReply *reply)
{
	CUresult result;
	void *library;

	result =
		object_take_parent(call, VGPU_HANDLE_LIBRARY, request->library, &library);
	return result == CUDA_SUCCESS ? unload_library(call, library) : result;
}

CUresult handle_cuLibraryGetKernel(struct call *call,
	const Vgpu__CuLibraryGetKernelRequest *request,
	Vgpu__CuLibraryGetKernelReply *reply)
{
	struct object *object;
	CUkernel kernel;
	CUresult result;

	result = object_find(call, VGPU_HANDLE_LIBRARY, request->library, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuLibraryGetKernel(
			&kernel, object->driver, request->name);
	if (result != CUDA_SUCCESS)
		return result;
	result = object_add_part(call, VGPU_HANDLE_KERNEL, kernel, object,
		request->library, &reply->p_kernel);
	if (result == CUDA_SUCCESS)
		flight_name(call->session, reply->p_kernel, request->name);
	return result;
}

CUresult handle_cuLibraryEnumerateKernels(struct call *call,
	const Vgpu__CuLibraryEnumerateKernelsRequest *request,
	Vgpu__CuLibraryEnumerateKernelsReply *reply)
{
	CUkernel *kernels = NULL;
	struct object *object;
	unsigned int n = 0;
	CUresult result;

	if (!call->driver->cuLibraryEnumerateKernels ||
		!call->driver->cuLibraryGetKernelCount)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_find(call, VGPU_HANDLE_LIBRARY, request->lib, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuLibraryGetKernelCount(&n, object->driver);
	if (result == CUDA_SUCCESS)
		result = kernel_list_prepare(call, &n, request->num_kernels,
			(void ***)&kernels, &reply->kernels);
	if (result == CUDA_SUCCESS && n)
		result = call->driver->cuLibraryEnumerateKernels(
			kernels, n, object->driver);
	if (result != CUDA_SUCCESS)
		return result;
	return kernel_list(call, VGPU_HANDLE_KERNEL, (void **)kernels, n, request->first,
		object, request->lib, reply->kernels, &reply->n_kernels);
}

/* A kernel is a child of its library, however it was looked up. */
CUresult handle_cuKernelGetLibrary(struct call *call,
	const Vgpu__CuKernelGetLibraryRequest *request,
	Vgpu__CuKernelGetLibraryReply *reply)
{
	struct object *object;
	CUresult result;

	result = object_find(call, VGPU_HANDLE_KERNEL, request->kernel, &object);
	if (result == CUDA_SUCCESS)
		reply->p_lib = object_handle(
			&call->session->objects[VGPU_HANDLE_LIBRARY], object->parent);
	return result;
}

CUresult handle_cuLibraryGetModule(struct call *call,
	const Vgpu__CuLibraryGetModuleRequest *request,
	Vgpu__CuLibraryGetModuleReply *reply)
{
	struct object *object;
	CUmodule module;
	CUresult result;

	if (!call->driver->cuLibraryGetModule)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_find(call, VGPU_HANDLE_LIBRARY, request->library, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuLibraryGetModule(&module, object->driver);
	if (result != CUDA_SUCCESS)
		return result;
	return object_add_part(call, VGPU_HANDLE_MODULE, module, object, request->library,
		&reply->p_mod);
}

CUresult handle_cuKernelGetFunction(struct call *call,
	const Vgpu__CuKernelGetFunctionRequest *request,
	Vgpu__CuKernelGetFunctionReply *reply)
{
	struct object *object;
	CUfunction function;
	CUresult result;

	if (!call->driver->cuKernelGetFunction)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_find(call, VGPU_HANDLE_KERNEL, request->kernel, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuKernelGetFunction(&function, object->driver);
	/* It is unloaded with the library, as the kernel is. */
	if (result != CUDA_SUCCESS)
		return result;
	result = object_add_part(call, VGPU_HANDLE_FUNCTION, function, object,
		request->kernel, &reply->p_func);
	if (result == CUDA_SUCCESS)
		flight_name_like(call->session, reply->p_func, request->kernel);
	return result;
}

CUresult handle_cuLibraryGetGlobal(struct call *call,
	const Vgpu__CuLibraryGetGlobalRequest *request,
	Vgpu__CuLibraryGetGlobalReply *reply)
{
	_vgpu_cleanup_(lookup_end) struct lookup lookup = {};
	CUdeviceptr address = 0;
	struct object *object;
	size_t size = 0;
	CUresult result;

	if (!call->driver->cuLibraryGetGlobal)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = lookup_begin(
		&lookup, call, VGPU_HANDLE_LIBRARY, request->library, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuLibraryGetGlobal(
			&address, &size, object->driver, request->name);
	return result == CUDA_SUCCESS ? variable_publish(call, &lookup, object, address,
						size, false, VARIABLE_REPLY(reply))
				      : result;
}

CUresult handle_cuLibraryGetManaged(struct call *call,
	const Vgpu__CuLibraryGetManagedRequest *request,
	Vgpu__CuLibraryGetManagedReply *reply)
{
	_vgpu_cleanup_(lookup_end) struct lookup lookup = {};
	CUdeviceptr address = 0;
	struct object *object;
	size_t size = 0;
	CUresult result;

	if (!call->driver->cuLibraryGetManaged)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = lookup_begin(
		&lookup, call, VGPU_HANDLE_LIBRARY, request->library, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuLibraryGetManaged(
			&address, &size, object->driver, request->name);
	return result == CUDA_SUCCESS ? variable_publish(call, &lookup, object, address,
						size, true, VARIABLE_REPLY(reply))
				      : result;
}

CUresult handle_cuKernelGetName(struct call *call,
	const Vgpu__CuKernelGetNameRequest *request, Vgpu__CuKernelGetNameReply *reply)
{
	const char *name = NULL;
	CUresult result;
	void *kernel;

	if (!call->driver->cuKernelGetName)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_get(call, VGPU_HANDLE_KERNEL, request->hfunc, false, &kernel);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuKernelGetName(&name, kernel);
	return result == CUDA_SUCCESS ? kernel_name(call, name, &reply->kernel_name)
				      : result;
}
