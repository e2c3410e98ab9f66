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

/* What cuMemAlloc() promises for an allocation, variables have each on its own. */
#define MODULE_VARIABLE_ALIGN 256

CUmodule module_ref(CUmodule module)
{
	__atomic_fetch_add(&module->n_refs, 1, __ATOMIC_RELAXED);
	return module;
}

CUmodule module_unref(CUmodule module)
{
	if (__atomic_sub_fetch(&module->n_refs, 1, __ATOMIC_ACQ_REL))
		return NULL;
	softgpu_program_free(module->program);
	ptx_module_free(module->ptx);
	free(module->functions);
	free(module->addresses);
	pthread_mutex_destroy(&module->lock);
	free(module);
	return NULL;
}

/* Handles and memory go at once, the rest when no node of a graph has a kernel of it. */
static void module_release(struct object *object)
{
	CUmodule module = (CUmodule)object;

	reference_forget(module);
	for (size_t i = 0; i < module->n_functions; i++)
		object_leave(&module->functions[i].object);
	if (!module->library)
		managed_free(module->managed);
	library_forget(module);
	if (module->variables)
		memory_free(&softgpu_device.memory, module->variables,
			MEMORY_KIND(RANGE_MODULE));
	object_leave(object);
	/* Partner: exec_check(), which looks whether its functions are still there. */
	__atomic_add_fetch(&softgpu_device.n_unloads, 1, __ATOMIC_RELEASE);
	module_unref(module);
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
	CUresult r = CUDA_SUCCESS;

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
	for (size_t i = 0; i < n && !r; i++)
		if (!softgpu_program_variable(module->program, i)->is_managed)
			r = softgpu_program_fill(module->program, i,
				(void *)(uintptr_t)module->addresses[i], message);
	return r;
}

static CUresult module_place(
	CUmodule module, CUcontext context, struct softgpu_message *message)
{
	struct range range = {
		.kind = RANGE_MODULE,
		.owner = context,
		.device = context->device,
	};
	size_t n = softgpu_program_n_variables(module->program);
	CUresult r;

	if (!n)
		return CUDA_SUCCESS;
	module->addresses = calloc(n, sizeof(*module->addresses));
	if (!module->addresses)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = module_lay_out(module, &range.size);
	if (r)
		return r;
	if (range.size &&
		memory_alloc(&softgpu_device.memory, &range, &module->variables))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return module_fill(module, message);
}

static CUresult module_list(CUmodule module)
{
	size_t n = softgpu_program_n_kernels(module->program);

	module->functions = calloc(n + 1, sizeof(*module->functions));
	if (!module->functions)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n; i++) {
		CUfunction function = &module->functions[i];

		if (object_enter(&function->object, OBJECT_FUNCTION))
			return CUDA_ERROR_OUT_OF_MEMORY;
		module->n_functions++;
		function->module = module;
		function->name = softgpu_program_kernel_name(module->program, i);
		function->dynamic_shared_max = UINT32_MAX;
		function->carveout = -1;
	}
	return CUDA_SUCCESS;
}

static CUresult module_build(CUmodule module, CUcontext context,
	const struct image *image, CUlibrary library, struct image_log *log)
{
	struct softgpu_message message = { 0 };
	CUresult r;

	r = image_parse(image, &module->ptx, log);
	if (!r && !library)
		r = image_check(module->ptx, log);
	if (r)
		return r;
	if (library)
		module->managed = library->managed;
	else
		r = managed_new(&module->managed, module->ptx);
	if (!r && !library && module->managed)
		r = managed_fill(module->managed, &message);
	if (!r)
		r = softgpu_program_new(&module->program, module->ptx, &message);
	if (!r)
		r = module_place(module, context, &message);
	if (!r)
		r = module_list(module);
	if (r && *message.text) {
		snprintf(log->text, sizeof(log->text), "%s", message.text);
		image_warn(r, log);
	}
	return r;
}

CUresult module_new(CUmodule *modulep, CUcontext context, const struct image *image,
	CUlibrary library, struct image_log *log)
{
	CUmodule module;
	CUresult r;

	module = object_new(OBJECT_MODULE, sizeof(*module));
	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->n_refs = 1;
	pthread_mutex_init(&module->lock, NULL);
	module->object.release = module_release;
	r = module_build(module, context, image, library, log);
	if (r) {
		if (library)
			module->managed = NULL;
		module_release(&module->object);
		return r;
	}
	context_add(context, &module->object);
	*modulep = module;
	return CUDA_SUCCESS;
}

void module_delete(CUmodule module)
{
	context_remove(&module->object);
	module_release(&module->object);
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
	struct image_log log = image_log_begin();
	struct image *loaded = NULL;
	CUcontext context;
	CUresult r;

	r = context_current(&context);
	if (r)
		return r;
	if (!module || !image || (numOptions && (!options || !optionValues)))
		return CUDA_ERROR_INVALID_VALUE;
	print_flush(context);
	r = image_new(&loaded, image, &log);
	if (!r)
		r = module_new(module, context, loaded, NULL, &log);
	image_free(loaded);
	if (!r)
		jit_describe(numOptions, options, optionValues, (*module)->ptx, &log);
	jit_report(numOptions, options, optionValues, &log, r != CUDA_SUCCESS);
	return r;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	return cuModuleLoadDataEx(module, fatCubin, 0, NULL, NULL);
}

CUresult module_read_file(const char *name, char **textp)
{
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	char *text = NULL;
	long size;
	FILE *file;

	file = fopen(name, "rbe");
	if (!file)
		return CUDA_ERROR_FILE_NOT_FOUND;
	if (!fseek(file, 0, SEEK_END) && (size = ftell(file)) >= 0) {
		rewind(file);
		text = calloc(1, (size_t)size + 16);
		if (text && fread(text, 1, size, file) == (size_t)size) {
			*textp = text;
			text = NULL;
			r = CUDA_SUCCESS;
		}
	}
	free(text);
	fclose(file);
	return r;
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	CUcontext context;
	char *text;
	CUresult r;

	r = context_current(&context);
	if (r)
		return r;
	if (!module || !fname)
		return CUDA_ERROR_INVALID_VALUE;
	r = module_read_file(fname, &text);
	if (r)
		return r;
	r = cuModuleLoadData(module, text);
	free(text);
	return r;
}

CUresult cuModuleUnload(CUmodule hmod)
{
	CUcontext context;
	CUresult r;

	r = context_current(&context);
	if (r)
		return r;
	if (!object_is(hmod, OBJECT_MODULE) || hmod->library)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sched_context_wait(&hmod->object.context->sched);
	print_flush(hmod->object.context);
	module_delete(hmod);
	return r;
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	CUcontext context;
	CUresult r;

	r = context_current(&context);
	if (r)
		return r;
	if (!hfunc || !name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_is(hmod, OBJECT_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	for (size_t i = 0; i < hmod->n_functions; i++) {
		CUfunction function = &hmod->functions[i];

		if (strcmp(function->name, name))
			continue;
		r = function_load(function);
		if (!r)
			*hfunc = function;
		return r;
	}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	CUresult r;

	r = device_check();
	if (r)
		return r;
	if (!object_is(mod, OBJECT_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = mod->n_functions;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(
	CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	CUcontext context;
	CUresult r;

	r = context_current(&context);
	if (r)
		return r;
	if (!name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_is(hmod, OBJECT_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	return module_get_variable(hmod, name, dptr, bytes);
}

/* Kernels are decoded when they are asked for, images are read at once. */
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	CUresult r;

	r = device_check();
	if (r)
		return r;
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(
	CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	CUresult r;

	r = device_check();
	if (r)
		return r;
	if (!object_is(mod, OBJECT_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!functions || !numFunctions)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < numFunctions && i < mod->n_functions; i++)
		functions[i] = &mod->functions[i];
	return CUDA_SUCCESS;
}
