/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points: modules and libraries
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/cleanup.h"
#include "vgpu/g-driver.pb-c.h"

#include "code/load.h"
#include "code/memo.h"
#include "g-remote.h"
#include "memory/mirror.h"
#include "memory/range.h"
#include "process/call.h"
#include "process/context.h"
#include "process/environment.h"

/* The longest name of a variable or function. */
#define NAME_MAX_SIZE 4096u

static CUresult load_module(CUmodule *module, const struct shim_load_source *source,
	unsigned int n_options, CUjit_option *options, void **values)
{
	Vgpu__CuModuleLoadDataExRequest request =
		VGPU__CU_MODULE_LOAD_DATA_EX_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuModuleLoadDataEx);
	CUresult result = shim_call_check(call.id);
	_vgpu_cleanup_(shim_load_freep) struct shim_load *load = NULL;
	const Vgpu__CuModuleLoadDataExReply *reply;
	const ProtobufCMessage *message;

	if (result != CUDA_SUCCESS)
		return result;
	if (!module || !source->image)
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_load_image(&load, source, options, values, n_options);
	if (result != CUDA_SUCCESS)
		return result;
	do {
		request.load = shim_load_bytes(load);
		result = shim_call_sync(&call, &request.base,
			&vgpu__cu_module_load_data_ex_reply__descriptor, &message);
		if (!message)
			return result;
		reply = (const Vgpu__CuModuleLoadDataExReply *)message;
	} while (shim_load_again(load, &reply->load_result, &result));
	if (result == CUDA_SUCCESS)
		*module = (CUmodule)(uintptr_t)reply->module;
	shim_load_finish(load, &load->jit, &reply->load_result);
	return result;
}

CUresult shim_cuModuleLoadDataEx(CUmodule *module, const void *image,
	unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	const struct shim_load_source source = { image, NULL };

	return load_module(module, &source, numOptions, options, optionValues);
}

CUresult shim_cuModuleLoadData(CUmodule *module, const void *image)
{
	return shim_cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult shim_cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	return shim_cuModuleLoadDataEx(module, fatCubin, 0, NULL, NULL);
}

CUresult shim_cuModuleLoad(CUmodule *module, const char *fname)
{
	_vgpu_cleanup_(shim_image_file_deinit) struct shim_image_file file = {};
	CUresult result;

	SHIM_CHECK_READY();
	if (!module || !fname)
		return CUDA_ERROR_INVALID_VALUE;
	result = shim_image_file_read(fname, &file);
	if (result != CUDA_SUCCESS)
		return result;
	return load_module(
		module, &(struct shim_load_source){ file.data, &file }, 0, NULL, NULL);
}

CUresult shim_cuModuleUnload(CUmodule hmod)
{
	shim_range_drop_owner((uint64_t)(uintptr_t)hmod);
	return shim_remote_cuModuleUnload(hmod);
}

/* A CUDA runtime asks, and hands over its images at their first use or all at once. An
 * image handed over is loaded whole, whichever it is. */
CUresult shim_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	SHIM_CHECK_READY();
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = shim_environment.loading_mode;
	return CUDA_SUCCESS;
}

CUresult shim_cuModuleEnumerateFunctions(
	CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	Vgpu__CuModuleEnumerateFunctionsRequest request =
		VGPU__CU_MODULE_ENUMERATE_FUNCTIONS_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuModuleEnumerateFunctions);
	const Vgpu__CuModuleEnumerateFunctionsReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	if (!functions)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.mod = (uint64_t)(uintptr_t)mod;
	request.num_functions = numFunctions;
	do {
		result = shim_memo_call(&call, &request.base,
			&vgpu__cu_module_enumerate_functions_reply__descriptor, &message);
		if (result != CUDA_SUCCESS)
			return result;
		reply = (const Vgpu__CuModuleEnumerateFunctionsReply *)message;
		if (reply->n_functions > numFunctions - request.first)
			return CUDA_ERROR_UNKNOWN;
		for (size_t i = 0; i < reply->n_functions; i++)
			functions[request.first++] =
				(CUfunction)(uintptr_t)reply->functions[i];
	} while (reply->n_functions && request.first < numFunctions);
	return CUDA_SUCCESS;
}

/* The host's answer about a variable. */
struct variable {
	uint64_t owner; /* the module or library */
	uint64_t address;
	uint64_t size;
	/* Of managed ones: the run of extents they lie in, or the pieces that mirror
	 * them. */
	uint32_t first_extent;
	uint32_t n_extents;
	const ProtobufCBinaryData *pieces;
};

/*
 * Records the range of a variable, so that copies to it are known to be valid, and maps a
 * managed one into the program. Mapping a run again replaces it by the same bytes, which
 * concurrent users do not notice.
 */
static CUresult keep_variable(const struct variable *variable)
{
	bool is_managed = variable->n_extents || variable->pieces->len;
	struct shim_range range = {
		.base = variable->address,
		.size = variable->size,
		.kind = is_managed ? SHIM_RANGE_MANAGED_VARIABLE : SHIM_RANGE_VARIABLE,
		.owner = variable->owner,
	};
	CUresult result = CUDA_SUCCESS;
	struct shim_range known;

	/* One of a library is the same in all contexts, and there before any of them. */
	if (!is_managed)
		range.context = shim_thread_context(shim_thread_get());
	else if (variable->pieces->len)
		result = shim_mirror_map(variable->pieces->data, variable->pieces->len);
	else if (!shim_range_find(range.base, &known) &&
		 shim_channel_map_extents(
			 &shim_channel, variable->first_extent, variable->n_extents))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS)
		return result;
	return shim_range_add(&range) || !is_managed ? CUDA_SUCCESS
						     : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Takes an answer apart; all three are alike. */
#define VARIABLE(_owner, _reply)                                                         \
	(&(struct variable){                                                             \
		.owner = (_owner),                                                       \
		.address = (_reply)->dptr,                                               \
		.size = (_reply)->bytes,                                                 \
		.first_extent = (_reply)->first_extent,                                  \
		.n_extents = (_reply)->n_extents,                                        \
		.pieces = &(_reply)->pieces,                                             \
	})

static CUresult give_variable(
	const struct variable *variable, CUdeviceptr *dptr, size_t *bytes)
{
	CUresult result = keep_variable(variable);

	if (result != CUDA_SUCCESS)
		return result;
	if (dptr)
		*dptr = variable->address;
	if (bytes)
		*bytes = variable->size;
	return CUDA_SUCCESS;
}

static CUresult check_name(struct shim_call *call, const char *name)
{
	return shim_call_error(
		call, name && strnlen(name, NAME_MAX_SIZE + 1) <= NAME_MAX_SIZE
			      ? CUDA_SUCCESS
			      : CUDA_ERROR_INVALID_VALUE);
}

CUresult shim_cuModuleGetGlobal_v2(
	CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	Vgpu__CuModuleGetGlobalV2Request request =
		VGPU__CU_MODULE_GET_GLOBAL_V2_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuModuleGetGlobal_v2);
	const Vgpu__CuModuleGetGlobalV2Reply *reply;
	const ProtobufCMessage *message;
	CUresult result = check_name(&call, name);

	if (result != CUDA_SUCCESS)
		return result;
	request.hmod = (uint64_t)(uintptr_t)hmod;
	request.name = (char *)name;
	result = shim_memo_call(&call, &request.base,
		&vgpu__cu_module_get_global_v2_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuModuleGetGlobalV2Reply *)message;
	return give_variable(VARIABLE(request.hmod, reply), dptr, bytes);
}

/* Options of a library promise something about the program's image; the host has its
 * own copy, so it neither needs nor could keep them. */
static CUresult check_library_options(const CUlibraryOption *options, unsigned int n)
{
	if (n && !options)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < n; i++) {
		if (options[i] == CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (options[i] != CU_LIBRARY_BINARY_IS_PRESERVED)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static CUresult load_library(CUlibrary *library, const struct shim_load_source *source,
	unsigned int n_options, CUjit_option *options, void **values)
{
	Vgpu__CuLibraryLoadDataRequest request = VGPU__CU_LIBRARY_LOAD_DATA_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuLibraryLoadData);
	CUresult result = shim_call_check(call.id);
	_vgpu_cleanup_(shim_load_freep) struct shim_load *load = NULL;
	const Vgpu__CuLibraryLoadDataReply *reply;
	const ProtobufCMessage *message;

	if (result != CUDA_SUCCESS)
		return result;
	result = shim_load_image(&load, source, options, values, n_options);
	if (result != CUDA_SUCCESS)
		return result;
	do {
		request.load = shim_load_bytes(load);
		result = shim_call_sync(&call, &request.base,
			&vgpu__cu_library_load_data_reply__descriptor, &message);
		if (!message)
			return result;
		reply = (const Vgpu__CuLibraryLoadDataReply *)message;
	} while (shim_load_again(load, &reply->load_result, &result));
	if (result == CUDA_SUCCESS)
		*library = (CUlibrary)(uintptr_t)reply->library;
	shim_load_finish(load, &load->jit, &reply->load_result);
	return result;
}

CUresult shim_cuLibraryLoadData(CUlibrary *library, const void *code,
	CUjit_option *jitOptions, void **jitOptionsValues, unsigned int numJitOptions,
	CUlibraryOption *libraryOptions, void **libraryOptionValues,
	unsigned int numLibraryOptions)
{
	const struct shim_load_source source = { code, NULL };
	CUresult result;

	SHIM_CHECK_READY();
	if (!library || !code)
		return CUDA_ERROR_INVALID_VALUE;
	result = check_library_options(libraryOptions, numLibraryOptions);
	if (result != CUDA_SUCCESS)
		return result;
	return load_library(
		library, &source, numJitOptions, jitOptions, jitOptionsValues);
}

CUresult shim_cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
	CUjit_option *jitOptions, void **jitOptionsValues, unsigned int numJitOptions,
	CUlibraryOption *libraryOptions, void **libraryOptionValues,
	unsigned int numLibraryOptions)
{
	_vgpu_cleanup_(shim_image_file_deinit) struct shim_image_file file = {};
	CUresult result;

	SHIM_CHECK_READY();
	if (!library || !fileName)
		return CUDA_ERROR_INVALID_VALUE;
	result = check_library_options(libraryOptions, numLibraryOptions);
	/* The only one is about memory of the program, and is refused with a file. */
	if (result == CUDA_SUCCESS && numLibraryOptions)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = shim_image_file_read(fileName, &file);
	if (result != CUDA_SUCCESS)
		return result;
	return load_library(library, &(struct shim_load_source){ file.data, &file },
		numJitOptions, jitOptions, jitOptionsValues);
}

CUresult shim_cuLibraryUnload(CUlibrary library)
{
	shim_range_drop_owner((uint64_t)(uintptr_t)library);
	return shim_remote_cuLibraryUnload(library);
}

CUresult shim_cuLibraryEnumerateKernels(
	CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	Vgpu__CuLibraryEnumerateKernelsRequest request =
		VGPU__CU_LIBRARY_ENUMERATE_KERNELS_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuLibraryEnumerateKernels);
	const Vgpu__CuLibraryEnumerateKernelsReply *reply;
	const ProtobufCMessage *message;
	CUresult result;

	if (!kernels)
		return shim_call_error(&call, CUDA_ERROR_INVALID_VALUE);
	request.lib = (uint64_t)(uintptr_t)lib;
	request.num_kernels = numKernels;
	do {
		result = shim_memo_call(&call, &request.base,
			&vgpu__cu_library_enumerate_kernels_reply__descriptor, &message);
		if (result != CUDA_SUCCESS)
			return result;
		reply = (const Vgpu__CuLibraryEnumerateKernelsReply *)message;
		if (reply->n_kernels > numKernels - request.first)
			return CUDA_ERROR_UNKNOWN;
		for (size_t i = 0; i < reply->n_kernels; i++)
			kernels[request.first++] = (CUkernel)(uintptr_t)reply->kernels[i];
	} while (reply->n_kernels && request.first < numKernels);
	return CUDA_SUCCESS;
}

CUresult shim_cuLibraryGetGlobal(
	CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	Vgpu__CuLibraryGetGlobalRequest request =
		VGPU__CU_LIBRARY_GET_GLOBAL_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuLibraryGetGlobal);
	const Vgpu__CuLibraryGetGlobalReply *reply;
	const ProtobufCMessage *message;
	CUresult result = check_name(&call, name);

	if (result != CUDA_SUCCESS)
		return result;
	request.library = (uint64_t)(uintptr_t)library;
	request.name = (char *)name;
	result = shim_memo_call(&call, &request.base,
		&vgpu__cu_library_get_global_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuLibraryGetGlobalReply *)message;
	return give_variable(VARIABLE(request.library, reply), dptr, bytes);
}

CUresult shim_cuLibraryGetManaged(
	CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	Vgpu__CuLibraryGetManagedRequest request =
		VGPU__CU_LIBRARY_GET_MANAGED_REQUEST__INIT;
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuLibraryGetManaged);
	const Vgpu__CuLibraryGetManagedReply *reply;
	const ProtobufCMessage *message;
	CUresult result = check_name(&call, name);

	if (result != CUDA_SUCCESS)
		return result;
	request.library = (uint64_t)(uintptr_t)library;
	request.name = (char *)name;
	result = shim_memo_call(&call, &request.base,
		&vgpu__cu_library_get_managed_reply__descriptor, &message);
	if (result != CUDA_SUCCESS)
		return result;
	reply = (const Vgpu__CuLibraryGetManagedReply *)message;
	return give_variable(VARIABLE(request.library, reply), dptr, bytes);
}
