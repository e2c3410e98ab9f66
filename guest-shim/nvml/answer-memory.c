/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: memory and its errors
 */

#include <stddef.h>

#include "nvml/device.h"
#include "nvml/g-nvml-answers.h"

/* The share of the VM. The total and what is free are those of cuMemGetInfo; of several
 * devices with one limit, what the others use is neither free nor used here. */
nvmlReturn_t answer_nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	struct vgpu_status_device status;
	uint64_t left;
	nvmlReturn_t result = nvml_device_read_memory(device, &status, &left);

	if (result != NVML_SUCCESS)
		return result;
	if (status.memory_used > status.memory_total)
		status.memory_used = status.memory_total;
	*memory = (nvmlMemory_t){
		.total = status.memory_total,
		.free = status.memory_total - status.memory_used,
		.used = status.memory_used,
	};
	if (left < memory->free)
		memory->free = left;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetMemoryInfo_v2(
	nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	nvmlMemory_t all;
	nvmlReturn_t result;

	if (memory->version != nvmlMemory_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	result = answer_nvmlDeviceGetMemoryInfo(device, &all);
	if (result == NVML_SUCCESS)
		*memory = (nvmlMemory_v2_t){
			.version = nvmlMemory_v2,
			.total = all.total,
			.reserved = all.total - all.free - all.used,
			.free = all.free,
			.used = all.used,
		};
	return result;
}

nvmlReturn_t answer_nvmlDeviceGetEccMode(
	nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
	unsigned int mode;
	nvmlReturn_t result = nvml_device_answer(device, VGPU_SENSOR_ECC_MODE, &mode);

	if (result == NVML_SUCCESS)
		*current = *pending = mode ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
	return result;
}

static const enum vgpu_status_sensor ecc_sensors[NVML_ECC_COUNTER_TYPE_COUNT]
						[NVML_MEMORY_ERROR_TYPE_COUNT] = {
	[NVML_VOLATILE_ECC] = {
		[NVML_MEMORY_ERROR_TYPE_CORRECTED] = VGPU_SENSOR_ECC_CORRECTED,
		[NVML_MEMORY_ERROR_TYPE_UNCORRECTED] = VGPU_SENSOR_ECC_UNCORRECTED,
	},
	[NVML_AGGREGATE_ECC] = {
		[NVML_MEMORY_ERROR_TYPE_CORRECTED] = VGPU_SENSOR_ECC_CORRECTED_EVER,
		[NVML_MEMORY_ERROR_TYPE_UNCORRECTED] = VGPU_SENSOR_ECC_UNCORRECTED_EVER,
	},
};

nvmlReturn_t answer_nvmlDeviceGetTotalEccErrors(nvmlDevice_t device,
	nvmlMemoryErrorType_t errorType, nvmlEccCounterType_t counterType,
	unsigned long long *eccCounts)
{
	if ((unsigned int)errorType >= NVML_MEMORY_ERROR_TYPE_COUNT ||
		(unsigned int)counterType >= NVML_ECC_COUNTER_TYPE_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	return nvml_device_answer_64(
		device, ecc_sensors[counterType][errorType], eccCounts);
}

nvmlReturn_t answer_nvmlDeviceGetRetiredPagesPendingStatus(
	nvmlDevice_t device, nvmlEnableState_t *isPending)
{
	unsigned int pending;
	nvmlReturn_t result =
		nvml_device_answer(device, VGPU_SENSOR_RETIRED_PENDING, &pending);

	if (result == NVML_SUCCESS)
		*isPending = pending ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
	return result;
}

nvmlReturn_t answer_nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrRows,
	unsigned int *uncRows, unsigned int *isPending, unsigned int *failureOccurred)
{
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);
	int64_t corrected, uncorrected, state;

	if (result != NVML_SUCCESS)
		return result;
	if (!nvml_device_sensor(&status, VGPU_SENSOR_REMAPPED_CORRECTED, &corrected) ||
		!nvml_device_sensor(
			&status, VGPU_SENSOR_REMAPPED_UNCORRECTED, &uncorrected) ||
		!nvml_device_sensor(&status, VGPU_SENSOR_REMAPPED_STATE, &state))
		return NVML_ERROR_NOT_SUPPORTED;
	*corrRows = (unsigned int)corrected;
	*uncRows = (unsigned int)uncorrected;
	*isPending = state & 1;
	*failureOccurred = state >> 1 & 1;
	return NVML_SUCCESS;
}
