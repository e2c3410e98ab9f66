/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on modules
 */

#include "driver/driver.h"
#include "g-handlers.h"
#include "vgpu/cleanup.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/flight.h"
#include "worker/base/lookup.h"
#include "worker/base/object-handles.h"
#include "worker/base/objects.h"
#include "worker/code/images.h"
#include "worker/code/kernel.h"
#include "worker/code/load.h"
#include "worker/handle/variable.h"
#include "worker/memory/managed.h"
#include "worker/memory/mirror.h"

static CUresult load_module(struct call *call, struct load *load, uint64_t *handlep)
{
	CUresult result;
	CUmodule module;

	result = call->driver->cuModuleLoadDataEx(&module, load->images.code->start,
		load->jit.n_options, load->jit.options, load->jit.values);
	if (result != CUDA_SUCCESS)
		return result;
	result = managed_register(call);
	if (result == CUDA_SUCCESS)
		result = object_add(call, VGPU_HANDLE_MODULE, module, handlep);
	if (call_left_over(result))
		call->driver->cuModuleUnload(module);
	if (result == CUDA_SUCCESS)
		images_keep(call, &load->images, VGPU_HANDLE_MODULE, *handlep);
	return result;
}

CUresult handle_cuModuleLoadDataEx(struct call *call,
	const Vgpu__CuModuleLoadDataExRequest *request,
	Vgpu__CuModuleLoadDataExReply *reply)
{
	struct load *load;
	CUresult result;

	result = load_begin(call, &request->load, &load);
	if (result == CUDA_SUCCESS)
		result = load_module(call, load, &reply->module);
	return load_end(call, load, result, &reply->load_result);
}

CUresult handle_cuModuleUnload(struct call *call,
	const Vgpu__CuModuleUnloadRequest *request, Vgpu__CuModuleUnloadReply *reply)
{
	struct object *object;
	CUresult result;
	void *module;

	/* The program needs no current context for that: the module has its own. */
	result = object_find(call, VGPU_HANDLE_MODULE, request->hmod, &object);
	if (result == CUDA_SUCCESS && !object->parent)
		result = context_enter(
			call->session, call->runner, (struct context *)object->owner);
	if (result != CUDA_SUCCESS)
		return result;
	/* The module of a library is unloaded with the library only. */
	result = object_take_parent(call, VGPU_HANDLE_MODULE, request->hmod, &module);
	if (result != CUDA_SUCCESS)
		return result;
	lookups_await(call->session, module);
	mirror_forget(call->session, module);
	return call->driver->cuModuleUnload(module);
}

CUresult handle_cuModuleGetFunction(struct call *call,
	const Vgpu__CuModuleGetFunctionRequest *request,
	Vgpu__CuModuleGetFunctionReply *reply)
{
	struct object *object;
	CUfunction function;
	CUresult result;

	result = object_find(call, VGPU_HANDLE_MODULE, request->hmod, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuModuleGetFunction(
			&function, object->driver, request->name);
	if (result != CUDA_SUCCESS)
		return result;
	result = object_add_part(call, VGPU_HANDLE_FUNCTION, function, object,
		request->hmod, &reply->hfunc);
	if (result == CUDA_SUCCESS)
		flight_name(call->session, reply->hfunc, request->name);
	return result;
}

CUresult handle_cuModuleEnumerateFunctions(struct call *call,
	const Vgpu__CuModuleEnumerateFunctionsRequest *request,
	Vgpu__CuModuleEnumerateFunctionsReply *reply)
{
	CUfunction *functions = NULL;
	struct object *object;
	unsigned int n = 0;
	CUresult result;

	if (!call->driver->cuModuleEnumerateFunctions ||
		!call->driver->cuModuleGetFunctionCount)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = object_find(call, VGPU_HANDLE_MODULE, request->mod, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuModuleGetFunctionCount(&n, object->driver);
	if (result == CUDA_SUCCESS)
		result = kernel_list_prepare(call, &n, request->num_functions,
			(void ***)&functions, &reply->functions);
	if (result == CUDA_SUCCESS && n)
		result = call->driver->cuModuleEnumerateFunctions(
			functions, n, object->driver);
	if (result != CUDA_SUCCESS)
		return result;
	return kernel_list(call, VGPU_HANDLE_FUNCTION, (void **)functions, n,
		request->first, object, request->mod, reply->functions,
		&reply->n_functions);
}

CUresult handle_cuModuleGetGlobal_v2(struct call *call,
	const Vgpu__CuModuleGetGlobalV2Request *request,
	Vgpu__CuModuleGetGlobalV2Reply *reply)
{
	_vgpu_cleanup_(lookup_end) struct lookup lookup = {};
	CUdeviceptr address = 0;
	struct object *object;
	size_t size = 0;
	CUresult result;

	result = lookup_begin(&lookup, call, VGPU_HANDLE_MODULE, request->hmod, &object);
	if (result == CUDA_SUCCESS)
		result = call->driver->cuModuleGetGlobal_v2(
			&address, &size, object->driver, request->name);
	return result == CUDA_SUCCESS ? variable_publish(call, &lookup, object, address,
						size, false, VARIABLE_REPLY(reply))
				      : result;
}
