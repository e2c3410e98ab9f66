/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML: NVIDIA's library, opened by name
 */

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

#include "vgpu/log.h"
#include "worker/sensors/nvml.h"

static bool find_functions(struct nvml *nvml, void *library)
{
	bool is_whole = true;

#define NVML_FIND(_name, _is_required)                                                   \
	*(void **)&nvml->_name = dlsym(library, #_name);                                 \
	is_whole = is_whole && (nvml->_name || !(_is_required));
	NVML_FUNCTIONS(NVML_FIND)
#undef NVML_FIND
	return is_whole;
}

int nvml_open(struct nvml *nvml, const char *path)
{
	nvmlReturn_t result;
	void *library;

	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		vgpu_log_info("there is no NVML on this host: %s", dlerror());
		return -ENOENT;
	}
	if (!find_functions(nvml, library)) {
		vgpu_log_warning("%s lacks functions: its sensors are not read", path);
		return -ENOENT;
	}
	result = nvml->nvmlInit_v2();
	if (result == NVML_SUCCESS)
		return 0;
	vgpu_log_info("%s finds no driver (%d): its sensors are not read", path, result);
	return -ENOENT;
}
