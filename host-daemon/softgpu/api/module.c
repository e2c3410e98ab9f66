/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: an image in a context
 *
 * The variables of a module share one allocation, in which each has its place.
 * Kernels are decoded when they are first asked for.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/checked.h"

#include "api/api.h"
#include "api/image.h"
#include "ptx/module.h"

/* Each variable has the alignment that cuMemAlloc() promises. */
#define MODULE_VARIABLE_ALIGN 256

static void module_release(struct object *object)
{
	CUmodule module = (CUmodule)object;

	softgpu_program_free(module->program);
	ptx_module_free(module->ptx);
	free(module->functions);
	free(module->addresses);
	pthread_mutex_destroy(&module->lock);
	if (module->library)
		object_unref(&module->library->object);
}

/* Nothing of it can be looked up any more, nor launched by a thread that did so
 * before. */
static void module_close(CUmodule module)
{
	object_leave(&module->object);
	for (size_t i = 0; i < module->n_functions; i++)
		object_leave(&module->functions[i].object);
	/* Partners: launches, and exec_check(). */
	__atomic_store_n(&module->n_ends, 1, __ATOMIC_RELEASE);
	__atomic_add_fetch(&softgpu_device.n_unloads, 1, __ATOMIC_RELEASE);
}

/* Device memory is freed at once, because nothing runs; kernels stay while calls or nodes
 * of graphs refer to them. */
static void module_end(struct object *object)
{
	CUmodule module = (CUmodule)object;

	module_close(module);
	reference_forget(module);
	if (!module->library)
		managed_free(module->managed);
	library_forget(module);
	if (module->variables)
		memory_free(&softgpu_device.memory, module->variables,
			MEMORY_KIND(RANGE_MODULE));
}

/* Return: 0 with the offset of each variable in addresses, or INVALID_PTX. Managed ones
 * have their place already. */
static CUresult module_lay_out(CUmodule module, uint64_t *sizep)
{
	size_t n = softgpu_program_n_variables(module->program);
	const struct softgpu_variable *variable;
	uint64_t size = 0, align;

	for (size_t i = 0; i < n; i++) {
		variable = softgpu_program_variable(module->program, i);
		if (variable->is_managed)
			continue;
		align = variable->align > MODULE_VARIABLE_ALIGN ? variable->align
								: MODULE_VARIABLE_ALIGN;
		if (!vgpu_align_u64(size, align, &size))
			return CUDA_ERROR_INVALID_PTX;
		module->addresses[i] = size;
		if (!vgpu_add_u64(size, variable->size, &size))
			return CUDA_ERROR_INVALID_PTX;
	}
	*sizep = size;
	return CUDA_SUCCESS;
}

static CUresult module_fill(CUmodule module, struct softgpu_message *message)
{
	size_t n = softgpu_program_n_variables(module->program);
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < n; i++) {
		const struct softgpu_variable *variable =
			softgpu_program_variable(module->program, i);

		if (variable->is_managed)
			module->addresses[i] =
				managed_find(module->managed, variable->name, NULL);
		else
			module->addresses[i] += module->variables;
		softgpu_program_place(module->program, i, module->addresses[i]);
	}
	for (size_t i = 0; i < n && !result; i++)
		if (!softgpu_program_variable(module->program, i)->is_managed)
			result = softgpu_program_fill(module->program, i,
				(void *)(uintptr_t)module->addresses[i], message);
	return result;
}

static CUresult module_place(
	CUmodule module, CUcontext context, struct softgpu_message *message)
{
	struct range range = { .kind = RANGE_MODULE };
	size_t n = softgpu_program_n_variables(module->program);
	CUresult result;

	if (!n)
		return CUDA_SUCCESS;
	module->addresses = calloc(n, sizeof(*module->addresses));
	if (!module->addresses)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = module_lay_out(module, &range.size);
	if (result)
		return result;
	if (range.size)
		result = context_alloc(
			&range, context, module->object.generation, &module->variables);
	return result ? result : module_fill(module, message);
}

static CUresult module_list(CUmodule module)
{
	size_t n = softgpu_program_n_kernels(module->program);

	module->functions = calloc(n + 1, sizeof(*module->functions));
	if (!module->functions)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n; i++) {
		CUfunction function = &module->functions[i];

		function->object.kind = OBJECT_FUNCTION;
		function->object.whole = &module->object;
		function->module = module;
		function->name = softgpu_program_kernel_name(module->program, i);
		function->dynamic_shared_max = UINT32_MAX;
		function->carveout = -1;
		if (object_enter(&function->object))
			return CUDA_ERROR_OUT_OF_MEMORY;
		module->n_functions++;
	}
	return CUDA_SUCCESS;
}

static CUresult module_build(CUmodule module, CUcontext context,
	const struct image *image, CUlibrary library, struct image_log *log)
{
	struct softgpu_message message = { 0 };
	CUresult result;

	result = image_parse(image, &module->ptx, log);
	if (!result && !library)
		result = image_check(module->ptx, log);
	if (result)
		return result;
	if (library)
		module->managed = library->managed;
	else
		result = managed_new(&module->managed, module->ptx);
	if (!result && !library && module->managed)
		result = managed_fill(module->managed, &message);
	if (!result)
		result = softgpu_program_new(&module->program, module->ptx, &message);
	if (!result && softgpu_device.checks.kinds)
		result = softgpu_program_watch(module->program);
	if (!result)
		result = module_place(module, context, &message);
	if (!result)
		result = module_list(module);
	if (result && *message.text) {
		snprintf(log->text, sizeof(log->text), "%s", message.text);
		image_warn(result, log);
	}
	return result;
}

CUresult module_new(CUmodule *modulep, CUcontext context, const struct image *image,
	CUlibrary library, struct image_log *log)
{
	CUmodule module;
	CUresult result;

	module = object_new(OBJECT_MODULE, sizeof(*module), context);
	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&module->lock, NULL);
	module->object.end = module_end;
	module->object.release = module_release;
	if (library)
		object_ref(&library->object);
	module->library = library;
	result = module_build(module, context, image, library, log);
	if (!result)
		result = context_add(&module->object);
	if (!result) {
		*modulep = module;
		return CUDA_SUCCESS;
	}
	/* The library is locked, and does not know it. */
	if (library) {
		module->managed = NULL;
		module->library = NULL;
		object_unref(&library->object);
	}
	object_end(&module->object);
	return result;
}

CUresult module_delete(CUmodule module)
{
	CUcontext context = module->object.context;
	CUresult result;

	if (!context_remove(&module->object))
		return CUDA_ERROR_INVALID_HANDLE;
	/* First this, then the wait: what is not refused is waited for. */
	module_close(module);
	result = sched_context_wait(&context->sched);
	print_flush(context);
	object_end(&module->object);
	return result;
}

CUresult module_get_variable(
	CUmodule module, const char *name, CUdeviceptr *addressp, size_t *sizep)
{
	size_t n = softgpu_program_n_variables(module->program);

	for (size_t i = 0; i < n; i++) {
		const struct softgpu_variable *variable =
			softgpu_program_variable(module->program, i);

		if (strcmp(variable->name, name) || variable->reference)
			continue;
		if (addressp)
			*addressp = module->addresses[i];
		if (sizep)
			*sizep = variable->size;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

/*
 * Calls
 */

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
	CUjit_option *options, void **optionValues)
{
	API_CALL;
	struct image_log log = image_log_begin();
	struct image *loaded = NULL;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!module || !image || (numOptions && (!options || !optionValues)))
		return CUDA_ERROR_INVALID_VALUE;
	print_flush(context);
	result = image_new(&loaded, image, &log);
	if (!result)
		result = module_new(module, context, loaded, NULL, &log);
	image_free(loaded);
	if (!result)
		jit_describe(numOptions, options, optionValues, (*module)->ptx, &log);
	jit_report(numOptions, options, optionValues, &log, result != CUDA_SUCCESS);
	return result;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	return cuModuleLoadDataEx(module, fatCubin, 0, NULL, NULL);
}

CUresult module_read_file(const char *name, char **textp, size_t *sizep)
{
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	char *text = NULL;
	long size;
	FILE *file;

	file = fopen(name, "rbe");
	if (!file)
		return CUDA_ERROR_FILE_NOT_FOUND;
	if (!fseek(file, 0, SEEK_END) && (size = ftell(file)) >= 0) {
		rewind(file);
		text = calloc(1, (size_t)size + 16);
		if (text && fread(text, 1, size, file) == (size_t)size)
			result = image_is_whole(text, size) ? CUDA_SUCCESS
							    : CUDA_ERROR_INVALID_IMAGE;
	}
	if (!result) {
		*textp = text;
		*sizep = (size_t)size;
		text = NULL;
	}
	free(text);
	fclose(file);
	return result;
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	API_CALL;
	CUcontext context;
	CUresult result;
	size_t size;
	char *text;

	result = context_current(&context);
	if (result)
		return result;
	if (!module || !fname)
		return CUDA_ERROR_INVALID_VALUE;
	result = module_read_file(fname, &text, &size);
	if (result)
		return result;
	result = cuModuleLoadData(module, text);
	free(text);
	return result;
}

CUresult cuModuleUnload(CUmodule hmod)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	/* None has to be current: the module has its own. */
	result = context_current(&context);
	if (result && result != CUDA_ERROR_INVALID_CONTEXT)
		return result;
	if (!object_hold(hmod, OBJECT_MODULE) || hmod->library)
		return CUDA_ERROR_INVALID_HANDLE;
	return module_delete(hmod);
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!hfunc || !name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_hold(hmod, OBJECT_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	for (size_t i = 0; i < hmod->n_functions; i++) {
		CUfunction function = &hmod->functions[i];

		if (strcmp(function->name, name))
			continue;
		result = function_look_up(function);
		if (!result)
			*hfunc = function;
		return result;
	}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(mod, OBJECT_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = mod->n_functions;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(
	CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	API_CALL;
	CUcontext context;
	CUresult result;

	result = context_current(&context);
	if (result)
		return result;
	if (!name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_hold(hmod, OBJECT_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	return module_get_variable(hmod, name, dptr, bytes);
}

/* Kernels are decoded when they are asked for, images are read at once. */
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(
	CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	API_CALL;
	CUresult result;

	result = device_check();
	if (result)
		return result;
	if (!object_hold(mod, OBJECT_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!functions || !numFunctions)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < numFunctions && i < mod->n_functions; i++)
		functions[i] = &mod->functions[i];
	return CUDA_SUCCESS;
}
