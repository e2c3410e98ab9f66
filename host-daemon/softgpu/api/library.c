/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries: images without a context, and their kernels
 *
 * A library keeps the image. The first use of one of its kernels or variables in a
 * context makes a module there, which lives as long as both context and library.
 */

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/image.h"
#include "ptx/module.h"

/* Its modules have ended, and there will be no other. */
static void library_end(struct object *object)
{
	CUlibrary library = (CUlibrary)object;

	for (size_t i = 0; i < library->n_kernels; i++)
		object_leave(&library->kernels[i].object);
}

static void library_release(struct object *object)
{
	CUlibrary library = (CUlibrary)object;

	free(library->kernels);
	managed_free(library->managed);
	ptx_module_free(library->ptx);
	image_free(library->image);
	pthread_mutex_destroy(&library->lock);
}

static CUresult library_list(CUlibrary library)
{
	const struct ptx_module *ptx = library->ptx;

	library->kernels = calloc(ptx->n_functions + 1, sizeof(*library->kernels));
	if (!library->kernels)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < ptx->n_functions; i++) {
		CUkernel kernel = &library->kernels[library->n_kernels];

		if (!ptx->functions[i].is_entry || !ptx->functions[i].is_defined)
			continue;
		kernel->object.kind = OBJECT_KERNEL;
		kernel->object.whole = &library->object;
		kernel->library = library;
		kernel->ptx_index = i;
		kernel->dynamic_shared_max = UINT32_MAX;
		if (object_enter(&kernel->object))
			return CUDA_ERROR_OUT_OF_MEMORY;
		library->n_kernels++;
	}
	return CUDA_SUCCESS;
}

static CUresult library_place_managed(CUlibrary library)
{
	struct softgpu_message message = { 0 };
	CUresult result;

	result = managed_new(&library->managed, library->ptx);
	return result || !library->managed ? result
					   : managed_fill(library->managed, &message);
}

static CUresult library_new(CUlibrary *libraryp, const void *code, struct image_log *log)
{
	CUlibrary library;
	CUresult result;

	library = object_new(OBJECT_LIBRARY, sizeof(*library), NULL);
	if (!library)
		return CUDA_ERROR_OUT_OF_MEMORY;
	library->object.end = library_end;
	library->object.release = library_release;
	pthread_mutex_init(&library->lock, NULL);
	TAILQ_INIT(&library->modules);
	result = image_new(&library->image, code, log);
	if (!result)
		result = image_parse(library->image, &library->ptx, log);
	if (!result)
		result = image_check(library->ptx, log);
	if (!result)
		result = library_list(library);
	if (!result)
		result = library_place_managed(library);
	/* Others may unload it before the call that loads it returns. */
	if (!result && (!object_keep(&library->object) || object_enter(&library->object)))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result)
		object_end(&library->object);
	else
		*libraryp = library;
	return result;
}

/* With library.lock. */
static CUmodule library_find(CUlibrary library, CUcontext context)
{
	CUmodule module;

	TAILQ_FOREACH(module, &library->modules, link)
		if (module->object.context == context)
			return module;
	return NULL;
}

/* The same. A module that has ended since waits for the lock in library_forget(). */
static CUresult library_add_module(
	CUlibrary library, CUcontext context, CUmodule *modulep)
{
	struct image_log log = { 0 };
	CUresult result;

	result = module_new(modulep, context, library->image, library, &log);
	if (result)
		return result;
	(*modulep)->is_in_library = true;
	TAILQ_INSERT_TAIL(&library->modules, *modulep, link);
	return CUDA_SUCCESS;
}

static CUresult library_module(CUlibrary library, CUcontext context, CUmodule *modulep)
{
	CUresult result = CUDA_SUCCESS;
	CUmodule module;

	pthread_mutex_lock(&library->lock);
	module = library_find(library, context);
	if (!module && library->has_ended)
		result = CUDA_ERROR_INVALID_HANDLE;
	else if (!module)
		result = library_add_module(library, context, &module);
	/* Held before library_forget() can be complete; after it, that is not allowed. */
	if (!result && !object_keep(&module->object))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&library->lock);
	if (!result)
		*modulep = module;
	return result;
}

void library_forget(CUmodule module)
{
	CUlibrary library = module->library;

	if (!library)
		return;
	pthread_mutex_lock(&library->lock);
	if (module->is_in_library)
		TAILQ_REMOVE(&library->modules, module, link);
	module->is_in_library = false;
	pthread_mutex_unlock(&library->lock);
}

/* Return: the first module, held; NULL: there is none, and there will be none. */
static CUmodule library_last(CUlibrary library)
{
	CUmodule module;

	pthread_mutex_lock(&library->lock);
	library->has_ended = true;
	module = TAILQ_FIRST(&library->modules);
	if (module)
		object_ref(&module->object);
	pthread_mutex_unlock(&library->lock);
	return module;
}

const char *kernel_name(const struct CUkern_st *kernel)
{
	return kernel->library->ptx->functions[kernel->ptx_index].name;
}

CUresult library_function(CUkernel kernel, CUcontext context, CUfunction *functionp)
{
	const char *name = kernel_name(kernel);
	CUmodule module;
	CUresult result;

	result = library_module(kernel->library, context, &module);
	if (result)
		return result;
	/* Kernels and functions have the same order unless one is left out. */
	for (size_t i = 0; i < module->n_functions; i++) {
		size_t at = (kernel - kernel->library->kernels + i) % module->n_functions;
		CUfunction function = &module->functions[at];

		if (strcmp(function->name, name))
			continue;
		if (setting_get(function->dynamic_shared_max) == UINT32_MAX)
			setting_set(function->dynamic_shared_max,
				setting_get(kernel->dynamic_shared_max));
		*functionp = function;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

/*
 * Calls
 */

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
	void **jitOptionsValues, unsigned int numJitOptions,
	CUlibraryOption *libraryOptions, void **libraryOptionValues,
	unsigned int numLibraryOptions)
{
	API_CALL;
	struct image_log log = image_log_begin();
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!library || !code || (numJitOptions && (!jitOptions || !jitOptionsValues)) ||
		(numLibraryOptions && (!libraryOptions || !libraryOptionValues)))
		return CUDA_ERROR_INVALID_VALUE;
	result = library_new(library, code, &log);
	if (!result)
		jit_describe(numJitOptions, jitOptions, jitOptionsValues, (*library)->ptx,
			&log);
	jit_report(numJitOptions, jitOptions, jitOptionsValues, &log,
		result != CUDA_SUCCESS);
	return result;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
	CUjit_option *jitOptions, void **jitOptionsValues, unsigned int numJitOptions,
	CUlibraryOption *libraryOptions, void **libraryOptionValues,
	unsigned int numLibraryOptions)
{
	API_CALL;
	CUresult result;
	size_t size;
	char *text;

	result = device_check();
	if (result)
		return result;
	if (!library || !fileName)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; libraryOptions && i < numLibraryOptions; i++)
		if (libraryOptions[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
			return CUDA_ERROR_INVALID_VALUE;
	result = module_read_file(fileName, &text, &size);
	if (result)
		return result;
	result = cuLibraryLoadData(library, text, jitOptions, jitOptionsValues,
		numJitOptions, libraryOptions, libraryOptionValues, numLibraryOptions);
	free(text);
	return result;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	API_CALL;
	CUresult result, fault = CUDA_SUCCESS;
	CUmodule module;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(library, OBJECT_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	/* Another thread may have been here first. */
	if (!object_leave(&library->object))
		return CUDA_ERROR_INVALID_HANDLE;
	while ((module = library_last(library))) {
		result = module_delete(module);
		/* Its context ends: then it waits for the lock, or has just had it. */
		if (result == CUDA_ERROR_INVALID_HANDLE)
			library_forget(module);
		else
			fault = result;
		object_unref(&module->object);
	}
	object_end(&library->object);
	return fault;
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!pKernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_hold(library, OBJECT_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	for (size_t i = 0; i < library->n_kernels; i++)
		if (!strcmp(kernel_name(&library->kernels[i]), name)) {
			*pKernel = &library->kernels[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(lib, OBJECT_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = lib->n_kernels;
	return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(
	CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(lib, OBJECT_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!kernels || !numKernels)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < numKernels && i < lib->n_kernels; i++)
		kernels[i] = &lib->kernels[i];
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!object_hold(library, OBJECT_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!pMod)
		return CUDA_ERROR_INVALID_VALUE;
	return library_module(library, context, pMod);
}

CUresult cuLibraryGetGlobal(
	CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	API_CALL;
	CUcontext context;
	CUmodule module;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_hold(library, OBJECT_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	result = library_module(library, context, &module);
	return result ? result : module_get_variable(module, name, dptr, bytes);
}

/* Needs no context: a CUDA runtime asks before it makes one. */
CUresult cuLibraryGetManaged(
	CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	API_CALL;
	uint64_t address;
	size_t size;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_hold(library, OBJECT_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	address = managed_find(library->managed, name, &size);
	if (!address)
		return CUDA_ERROR_NOT_FOUND;
	if (dptr)
		*dptr = address;
	if (bytes)
		*bytes = size;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!pFunc)
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_hold(kernel, OBJECT_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	return library_function(kernel, context, pFunc);
}

CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(kernel, OBJECT_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!pLib)
		return CUDA_ERROR_INVALID_VALUE;
	*pLib = kernel->library;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel hfunc)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(hfunc, OBJECT_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	object_keep_for_thread(&hfunc->object);
	*name = kernel_name(hfunc);
	return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(
	CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	API_CALL;
	const struct ptx_function *function;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(kernel, OBJECT_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	function = &kernel->library->ptx->functions[kernel->ptx_index];
	if (!paramOffset || paramIndex >= function->n_params)
		return CUDA_ERROR_INVALID_VALUE;
	*paramOffset = function->params[paramIndex].offset;
	if (paramSize)
		*paramSize = function->params[paramIndex].size;
	return CUDA_SUCCESS;
}
