/* Generated from nvml-small.xml by protocol/gen; do not edit. */
/* SPDX-License-Identifier: Apache-2.0 */
/* Exported functions of NVML */

/* These are all that is exported. */
#pragma GCC visibility push(default)
#include "vgpu/nvml.h"
#pragma GCC visibility pop

#include "nvml/device.h"
#include "nvml/g-nvml-answers.h"
#include "nvml/library.h"

nvmlReturn_t nvmlInit_v2(void)
{
	return answer_nvmlInit_v2();
}

nvmlReturn_t nvmlInit(void)
{
	return answer_nvmlInit_v2();
}

const char *nvmlErrorString(nvmlReturn_t result)
{
	return answer_nvmlErrorString(result);
}

nvmlReturn_t nvmlDeviceGetPair(nvmlDevice_t device, nvmlPair_v1_t *pair,
	unsigned int *list)
{
	nvmlReturn_t result = nvml_enter();

	if (result != NVML_SUCCESS)
		return result;
	if (!nvml_device_is_valid(device) || !pair)
		result = NVML_ERROR_INVALID_ARGUMENT;
	else
		result = answer_nvmlDeviceGetPair(device, pair, list);
	return nvml_leave(result);
}

nvmlReturn_t nvmlDeviceGetFog(nvmlDevice_t device, unsigned int *fog)
{
	nvmlReturn_t result = nvml_enter();

	if (result != NVML_SUCCESS)
		return result;
	if (!nvml_device_is_valid(device) || !fog)
		result = NVML_ERROR_INVALID_ARGUMENT;
	else
		result = NVML_ERROR_NOT_SUPPORTED;
	return nvml_leave(result);
}

nvmlReturn_t nvmlSetFog(unsigned int fog)
{
	nvmlReturn_t result = nvml_enter();

	if (result != NVML_SUCCESS)
		return result;
	result = NVML_ERROR_NO_PERMISSION;
	return nvml_leave(result);
}
