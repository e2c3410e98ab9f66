/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: memory, its errors, and where devices are to each other
 */

#include <stddef.h>

#include "nvml/device.h"
#include "nvml/g-nvml-answers.h"

/* The share of the VM, as cuMemGetInfo. */
nvmlReturn_t answer_nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);

	if (result == NVML_SUCCESS)
		*memory = (nvmlMemory_t){
			.total = status.memory_total,
			.free = status.memory_total - status.memory_used,
			.used = status.memory_used,
		};
	return result;
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

nvmlReturn_t answer_nvmlDeviceGetTotalEccErrors(nvmlDevice_t device,
	nvmlMemoryErrorType_t errorType, nvmlEccCounterType_t counterType,
	unsigned long long *eccCounts)
{
	if ((unsigned int)errorType >= NVML_MEMORY_ERROR_TYPE_COUNT ||
		(unsigned int)counterType >= NVML_ECC_COUNTER_TYPE_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (counterType != NVML_VOLATILE_ECC)
		return NVML_ERROR_NOT_SUPPORTED;
	return nvml_device_answer_64(device,
		errorType == NVML_MEMORY_ERROR_TYPE_CORRECTED
			? VGPU_SENSOR_ECC_CORRECTED
			: VGPU_SENSOR_ECC_UNCORRECTED,
		eccCounts);
}

/*
 * Topology: a guest knows that devices differ, and nothing of what is between them
 */

static nvmlGpuTopologyLevel_t level_of(nvmlDevice_t a, nvmlDevice_t b)
{
	return a == b ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_SYSTEM;
}

nvmlReturn_t answer_nvmlDeviceGetTopologyCommonAncestor(
	nvmlDevice_t device1, nvmlDevice_t device2, nvmlGpuTopologyLevel_t *pathInfo)
{
	*pathInfo = level_of(device1, device2);
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device,
	nvmlGpuTopologyLevel_t level, unsigned int *count, nvmlDevice_t *deviceArray)
{
	unsigned int room = *count, n = 0;

	if (level < NVML_TOPOLOGY_INTERNAL || level > NVML_TOPOLOGY_SYSTEM ||
		level % 10 || (room && !deviceArray))
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < nvml_device_n(); i++) {
		nvmlDevice_t other = nvml_device_get(i);

		if (other == device || level_of(device, other) != level)
			continue;
		if (n < room)
			deviceArray[n] = other;
		n++;
	}
	*count = n;
	return room && room < n ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* NCCL asks for each pair, that of a device with itself too, and takes no error. */
nvmlReturn_t answer_nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2,
	nvmlGpuP2PCapsIndex_t p2pIndex, nvmlGpuP2PStatus_t *p2pStatus)
{
	if ((unsigned int)p2pIndex >= NVML_P2P_CAPS_INDEX_UNKNOWN)
		return NVML_ERROR_INVALID_ARGUMENT;
	*p2pStatus = p2pIndex == NVML_P2P_CAPS_INDEX_NVLINK
			     ? NVML_P2P_STATUS_NOT_SUPPORTED
			     : NVML_P2P_STATUS_UNKNOWN;
	return NVML_SUCCESS;
}
