/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnvidia-ml.so.1 that is not of vGPU, and behaves as FAKE_NVML says
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/nvml.h"

#define EXPORT __attribute__((__visibility__("default")))

static bool is(const char *behaviour)
{
	const char *wanted = getenv("FAKE_NVML");

	return wanted && !strcmp(wanted, behaviour);
}

EXPORT nvmlReturn_t nvmlInit_v2(void)
{
	return is("fail") ? NVML_ERROR_DRIVER_NOT_LOADED : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlShutdown(void)
{
	return NVML_SUCCESS;
}

EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
	return "Driver Not Loaded";
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int size)
{
	snprintf(version, size, "1.2");
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *n)
{
	*n = is("empty") ? 0 : 1;
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int i, nvmlDevice_t *device)
{
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int size)
{
	snprintf(name, size, "fake");
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	*memory = (nvmlMemory_t){ .total = 4 << 20, .used = 1 << 20 };
	return NVML_SUCCESS;
}
