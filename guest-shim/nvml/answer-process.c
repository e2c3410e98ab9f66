/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: the processes on a device, and utilisation
 */

#include <stdbool.h>
#include <stddef.h>

#include "nvml/device.h"
#include "nvml/g-nvml-answers.h"
#include "nvml/process.h"

#define NO_INSTANCE 0xffffffffu

/* Modes of nvmlProcessDetailList_t. */
enum {
	MODE_COMPUTE = 0,
	MODE_GRAPHICS = 1,
	MODE_MPS = 2,
	_MODE_N,
};

/* Checks the room for a list of n entries, and says how many there are. */
static nvmlReturn_t make_room(unsigned int *countp, const void *list, uint32_t n)
{
	unsigned int room = *countp;

	*countp = n;
	if (room < n)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	return n && !list ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

static nvmlReturn_t read_into(struct nvml_processes *processes, nvmlDevice_t device,
	unsigned int *countp, const void *list)
{
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);

	if (result == NVML_SUCCESS)
		result = nvml_processes_read(processes, device);
	return result == NVML_SUCCESS ? make_room(countp, list, processes->n) : result;
}

nvmlReturn_t answer_nvmlDeviceGetComputeRunningProcesses(
	nvmlDevice_t device, unsigned int *infoCount, nvmlProcessInfo_v1_t *infos)
{
	struct nvml_processes processes;
	nvmlReturn_t result = read_into(&processes, device, infoCount, infos);

	for (uint32_t i = 0; result == NVML_SUCCESS && i < processes.n; i++)
		infos[i] = (nvmlProcessInfo_v1_t){
			.pid = processes.all[i].pid,
			.usedGpuMemory = processes.all[i].memory_used,
		};
	return result;
}

nvmlReturn_t answer_nvmlDeviceGetComputeRunningProcesses_v3(
	nvmlDevice_t device, unsigned int *infoCount, nvmlProcessInfo_t *infos)
{
	struct nvml_processes processes;
	nvmlReturn_t result = read_into(&processes, device, infoCount, infos);

	for (uint32_t i = 0; result == NVML_SUCCESS && i < processes.n; i++)
		infos[i] = (nvmlProcessInfo_t){
			.pid = processes.all[i].pid,
			.usedGpuMemory = processes.all[i].memory_used,
			.gpuInstanceId = NO_INSTANCE,
			.computeInstanceId = NO_INSTANCE,
		};
	return result;
}

/* None draws, and there is no MPS in the guest. */
static nvmlReturn_t no_process(
	nvmlDevice_t device, unsigned int *infoCount, const void *infos)
{
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);

	return result == NVML_SUCCESS ? make_room(infoCount, infos, 0) : result;
}

nvmlReturn_t answer_nvmlDeviceGetGraphicsRunningProcesses(
	nvmlDevice_t device, unsigned int *infoCount, nvmlProcessInfo_v1_t *infos)
{
	return no_process(device, infoCount, infos);
}

nvmlReturn_t answer_nvmlDeviceGetGraphicsRunningProcesses_v3(
	nvmlDevice_t device, unsigned int *infoCount, nvmlProcessInfo_t *infos)
{
	return no_process(device, infoCount, infos);
}

nvmlReturn_t answer_nvmlDeviceGetRunningProcessDetailList(
	nvmlDevice_t device, nvmlProcessDetailList_t *plist)
{
	struct nvml_processes processes;
	nvmlReturn_t result;

	if (plist->version != nvmlProcessDetailList_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (plist->mode >= _MODE_N)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (plist->mode != MODE_COMPUTE)
		return no_process(device, &plist->numProcArrayEntries, plist->procArray);
	result = read_into(
		&processes, device, &plist->numProcArrayEntries, plist->procArray);
	for (uint32_t i = 0; result == NVML_SUCCESS && i < processes.n; i++)
		plist->procArray[i] = (nvmlProcessDetail_v1_t){
			.pid = processes.all[i].pid,
			.usedGpuMemory = processes.all[i].memory_used,
			.gpuInstanceId = NO_INSTANCE,
			.computeInstanceId = NO_INSTANCE,
		};
	return result;
}

/*
 * Utilisation
 */

nvmlReturn_t answer_nvmlDeviceGetUtilizationRates(
	nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);

	if (result != NVML_SUCCESS)
		return result;
	if (status.utilisation == VGPU_STATUS_UNKNOWN)
		return NVML_ERROR_NOT_SUPPORTED;
	utilization->gpu = status.utilisation;
	utilization->memory = status.memory_utilisation == VGPU_STATUS_UNKNOWN
				      ? 0
				      : status.memory_utilisation;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetDynamicPstatesInfo(
	nvmlDevice_t device, nvmlGpuDynamicPstatesInfo_t *pDynamicPstatesInfo)
{
	nvmlUtilization_t rates;
	nvmlReturn_t result = answer_nvmlDeviceGetUtilizationRates(device, &rates);

	if (result != NVML_SUCCESS)
		return result;
	*pDynamicPstatesInfo = (nvmlGpuDynamicPstatesInfo_t){};
	pDynamicPstatesInfo->utilization[NVML_GPU_UTILIZATION_DOMAIN_GPU].bIsPresent = 1;
	pDynamicPstatesInfo->utilization[NVML_GPU_UTILIZATION_DOMAIN_GPU].percentage =
		rates.gpu;
	return NVML_SUCCESS;
}

static unsigned int percent(uint32_t utilisation)
{
	return utilisation == VGPU_STATUS_UNKNOWN ? 0 : utilisation;
}

/* Keeps those that have kept the device busy. */
static void drop_idle(struct nvml_processes *processes)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < processes->n; i++)
		if (percent(processes->all[i].utilisation) ||
			percent(processes->all[i].memory_utilisation))
			processes->all[n++] = processes->all[i];
	processes->n = n;
}

/* Of the last second: one sample for each process that was busy, if the caller has not
 * seen it. */
static nvmlReturn_t read_samples(struct nvml_processes *processes, nvmlDevice_t device,
	unsigned int *countp, const void *list, unsigned long long last_seen)
{
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);

	if (result == NVML_SUCCESS && status.utilisation == VGPU_STATUS_UNKNOWN)
		result = NVML_ERROR_NOT_SUPPORTED;
	if (result == NVML_SUCCESS)
		result = nvml_processes_read(processes, device);
	if (result == NVML_SUCCESS)
		drop_idle(processes);
	if (result == NVML_SUCCESS &&
		(!processes->n || processes->updated_us <= last_seen))
		result = NVML_ERROR_NOT_FOUND;
	return result == NVML_SUCCESS ? make_room(countp, list, processes->n) : result;
}

nvmlReturn_t answer_nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
	nvmlProcessUtilizationSample_t *utilization, unsigned int *processSamplesCount,
	unsigned long long lastSeenTimeStamp)
{
	struct nvml_processes processes;
	nvmlReturn_t result = read_samples(
		&processes, device, processSamplesCount, utilization, lastSeenTimeStamp);

	for (uint32_t i = 0; result == NVML_SUCCESS && i < processes.n; i++)
		utilization[i] = (nvmlProcessUtilizationSample_t){
			.pid = processes.all[i].pid,
			.timeStamp = processes.updated_us,
			.smUtil = percent(processes.all[i].utilisation),
			.memUtil = percent(processes.all[i].memory_utilisation),
		};
	return result;
}

nvmlReturn_t answer_nvmlDeviceGetProcessesUtilizationInfo(
	nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *procesesUtilInfo)
{
	nvmlProcessesUtilizationInfo_t *info = procesesUtilInfo;
	struct nvml_processes processes;
	nvmlReturn_t result;

	if (info->version != nvmlProcessesUtilizationInfo_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	result = read_samples(&processes, device, &info->processSamplesCount,
		info->procUtilArray, info->lastSeenTimeStamp);
	for (uint32_t i = 0; result == NVML_SUCCESS && i < processes.n; i++)
		info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
			.pid = processes.all[i].pid,
			.timeStamp = processes.updated_us,
			.smUtil = percent(processes.all[i].utilisation),
			.memUtil = percent(processes.all[i].memory_utilisation),
		};
	return result;
}

/*
 * Engines that no call of CUDA reaches
 */

/* As long as the host's own measurement of a second. */
#define SAMPLING_PERIOD_US 1000000u

static nvmlReturn_t engine(nvmlDevice_t device, enum vgpu_status_sensor sensor,
	unsigned int *utilization, unsigned int *period)
{
	nvmlReturn_t result = nvml_device_answer(device, sensor, utilization);

	if (result == NVML_SUCCESS)
		*period = SAMPLING_PERIOD_US;
	return result;
}

nvmlReturn_t answer_nvmlDeviceGetEncoderUtilization(
	nvmlDevice_t device, unsigned int *utilization, unsigned int *samplingPeriodUs)
{
	return engine(device, VGPU_SENSOR_ENCODER, utilization, samplingPeriodUs);
}

nvmlReturn_t answer_nvmlDeviceGetDecoderUtilization(
	nvmlDevice_t device, unsigned int *utilization, unsigned int *samplingPeriodUs)
{
	return engine(device, VGPU_SENSOR_DECODER, utilization, samplingPeriodUs);
}

nvmlReturn_t answer_nvmlDeviceGetJpgUtilization(
	nvmlDevice_t device, unsigned int *utilization, unsigned int *samplingPeriodUs)
{
	return engine(device, VGPU_SENSOR_JPEG, utilization, samplingPeriodUs);
}

nvmlReturn_t answer_nvmlDeviceGetOfaUtilization(
	nvmlDevice_t device, unsigned int *utilization, unsigned int *samplingPeriodUs)
{
	return engine(device, VGPU_SENSOR_OFA, utilization, samplingPeriodUs);
}

nvmlReturn_t answer_nvmlDeviceGetEncoderStats(nvmlDevice_t device,
	unsigned int *sessionCount, unsigned int *averageFps,
	unsigned int *averageLatency)
{
	*sessionCount = *averageFps = *averageLatency = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetEncoderSessions(nvmlDevice_t device,
	unsigned int *sessionCount, nvmlEncoderSessionInfo_t *sessionInfos)
{
	*sessionCount = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetFBCStats(nvmlDevice_t device, nvmlFBCStats_t *fbcStats)
{
	*fbcStats = (nvmlFBCStats_t){};
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetFBCSessions(nvmlDevice_t device,
	unsigned int *sessionCount, nvmlFBCSessionInfo_t *sessionInfo)
{
	*sessionCount = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetAccountingMode(
	nvmlDevice_t device, nvmlEnableState_t *mode)
{
	*mode = NVML_FEATURE_DISABLED;
	return NVML_SUCCESS;
}
