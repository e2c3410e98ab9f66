/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Library: loading, and codes in words
 */

#include <dlfcn.h>
#include <stddef.h>

#include "smi/library.h"

#define NAME "libnvidia-ml.so.1"

struct smi_library smi_library;

static void *handle;

nvmlReturn_t smi_library_open(void)
{
	handle = dlopen(NAME, RTLD_NOW | RTLD_LOCAL);
	/* Ours may be where no loader looks by itself. */
	if (!handle)
		handle = dlopen(VGPU_DIR_LIB "/" NAME, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return NVML_ERROR_LIBRARY_NOT_FOUND;
#define LOOK_UP(_name)                                                                   \
	smi_library._name = (__typeof__(smi_library._name))dlsym(handle, #_name);
	SMI_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
	return SMI_CALL(nvmlInit_v2);
}

void smi_library_close(void)
{
	if (!handle)
		return;
	SMI_CALL(nvmlShutdown);
	dlclose(handle);
	handle = NULL;
	smi_library = (struct smi_library){};
}

const char *smi_library_explain(nvmlReturn_t result)
{
	switch (result) {
	case NVML_ERROR_INVALID_ARGUMENT:
		return "there is no such device";
	case NVML_ERROR_NOT_FOUND:
		return "there is no such device";
	case NVML_ERROR_NO_PERMISSION:
		return "this user may not do that";
	case NVML_ERROR_DRIVER_NOT_LOADED:
		return "there is no way to a driver (VGPU_LOG=error says why)";
	case NVML_ERROR_LIBRARY_NOT_FOUND:
		return "there is no " NAME
		       " where the loader looks, nor in " VGPU_DIR_LIB;
	case NVML_ERROR_FUNCTION_NOT_FOUND:
		return NAME " is too old";
	case NVML_ERROR_GPU_IS_LOST:
		return "the device is lost: the host does not answer";
	default:
		return "the library failed";
	}
}

int smi_library_status(nvmlReturn_t result)
{
	return result >= 0 && result < 255 ? (int)result : 255;
}
