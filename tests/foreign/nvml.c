/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An NVML with known values, for tests of what reads NVIDIA's
 *
 * It has one device, with the UUID of FAKE_NVML_UUID, and all processes of the name
 * vgpu-worker use it. What the test leaves out is not supported.
 */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgpu/nvml.h"

#define EXPORT __attribute__((__visibility__("default")))

static struct nvmlDevice_st {
	int number;
} the_device;

EXPORT nvmlReturn_t nvmlInit_v2(void)
{
	return getenv("FAKE_NVML_UUID") ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	snprintf(version, length, "580.1.2");
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *deviceCount)
{
	*deviceCount = 1;
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(
	unsigned int index, nvmlDevice_t *device)
{
	*device = (nvmlDevice_t)(void *)&the_device;
	return index ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetName(
	nvmlDevice_t device, char *name, unsigned int length)
{
	snprintf(name, length, "Foreign Card");
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(
	nvmlDevice_t device, char *uuid, unsigned int length)
{
	snprintf(uuid, length, "%s", getenv("FAKE_NVML_UUID"));
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(
	nvmlDevice_t device, nvmlTemperatureSensors_t sensorType, unsigned int *temp)
{
	*temp = 41;
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power)
{
	*power = 123456;
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *speed)
{
	return NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(
	nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
	*clock = 1000 + type;
	return type == NVML_CLOCK_VIDEO ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

/* One value is known, the other one is not. */
EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(
	nvmlDevice_t device, int valuesCount, nvmlFieldValue_t *values)
{
	for (int i = 0; i < valuesCount; i++) {
		values[i].nvmlReturn = values[i].fieldId == NVML_FI_DEV_MEMORY_TEMP
					       ? NVML_SUCCESS
					       : NVML_ERROR_NOT_SUPPORTED;
		values[i].value.uiVal = 77;
	}
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPcieThroughput(
	nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned int *value)
{
	*value = counter == NVML_PCIE_UTIL_TX_BYTES ? 5000 : 6000;
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device,
	nvmlMemoryErrorType_t errorType, nvmlEccCounterType_t counterType,
	unsigned long long *eccCounts)
{
	*eccCounts = 17;
	return errorType == NVML_MEMORY_ERROR_TYPE_UNCORRECTED &&
			       counterType == NVML_AGGREGATE_ECC
		       ? NVML_SUCCESS
		       : NVML_ERROR_NOT_SUPPORTED;
}

/* Whoever has no room for the addresses learns how much is needed. */
EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device,
	nvmlPageRetirementCause_t cause, unsigned int *pageCount,
	unsigned long long *addresses)
{
	if (cause != NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR)
		return NVML_ERROR_NOT_SUPPORTED;
	*pageCount = 3;
	return NVML_ERROR_INSUFFICIENT_SIZE;
}

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrRows,
	unsigned int *uncRows, unsigned int *isPending, unsigned int *failureOccurred)
{
	*corrRows = 1;
	*uncRows = 2;
	*isPending = 0;
	*failureOccurred = 1;
	return NVML_SUCCESS;
}

/* Fills at most n pids. Return: how many there are. */
static unsigned int find_workers(unsigned int *pids, unsigned int n)
{
	DIR *folder = opendir("/proc");
	unsigned int n_found = 0;
	struct dirent *entry;
	char path[300], name[32];
	FILE *file;

	while (folder && (entry = readdir(folder)) && n_found < n) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file) && !strcmp(name, "vgpu-worker\n"))
			pids[n_found++] = (unsigned int)atoi(entry->d_name);
		fclose(file);
	}
	if (folder)
		closedir(folder);
	return n_found;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(
	nvmlDevice_t device, unsigned int *infoCount, nvmlProcessInfo_t *infos)
{
	unsigned int pids[64], n = find_workers(pids, *infoCount < 64 ? *infoCount : 64);

	for (unsigned int i = 0; i < n; i++)
		infos[i] =
			(nvmlProcessInfo_t){ .pid = pids[i], .usedGpuMemory = 5 << 20 };
	*infoCount = n;
	return NVML_SUCCESS;
}

/* One sample of now, and one that is too old to count. */
EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
	nvmlProcessUtilizationSample_t *utilization, unsigned int *processSamplesCount,
	unsigned long long lastSeenTimeStamp)
{
	unsigned int pids[32], n = find_workers(pids, 32);

	for (unsigned int i = 0; i < n; i++) {
		utilization[2 * i] = (nvmlProcessUtilizationSample_t){
			.pid = pids[i], .timeStamp = 50000000, .smUtil = 37, .memUtil = 12
		};
		utilization[2 * i + 1] = (nvmlProcessUtilizationSample_t){
			.pid = pids[i], .timeStamp = 1000, .smUtil = 99, .memUtil = 99
		};
	}
	*processSamplesCount = 2 * n;
	return NVML_SUCCESS;
}
