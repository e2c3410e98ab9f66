/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: processes and utilisation
 *
 * A process of the VM can use each of its devices, and the host counts all of them
 * together: so each device shows each process.
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
		result = nvml_processes_read(processes);
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

static unsigned int percent(uint32_t utilisation)
{
	return utilisation == VGPU_STATUS_UNKNOWN ? 0 : utilisation;
}

/* Of the last second: one sample for each process, if the caller has not seen it. */
static nvmlReturn_t read_samples(struct nvml_processes *processes, nvmlDevice_t device,
	unsigned int *countp, const void *list, unsigned long long last_seen)
{
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);

	if (result == NVML_SUCCESS && status.utilisation == VGPU_STATUS_UNKNOWN)
		result = NVML_ERROR_NOT_SUPPORTED;
	if (result == NVML_SUCCESS)
		result = nvml_processes_read(processes);
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

/* The newest value of a kind of sample, in its unit. Returns: false if unknown. */
static bool value_of(
	const struct vgpu_status_device *status, nvmlSamplingType_t type, int64_t *valuep)
{
	switch (type) {
	case NVML_TOTAL_POWER_SAMPLES:
		return nvml_device_sensor(status, VGPU_SENSOR_POWER, valuep);
	case NVML_GPU_UTILIZATION_SAMPLES:
		*valuep = status->utilisation;
		return status->utilisation != VGPU_STATUS_UNKNOWN;
	case NVML_MEMORY_UTILIZATION_SAMPLES:
		*valuep = status->memory_utilisation;
		return status->memory_utilisation != VGPU_STATUS_UNKNOWN;
	case NVML_ENC_UTILIZATION_SAMPLES:
		return nvml_device_sensor(status, VGPU_SENSOR_ENCODER, valuep);
	case NVML_DEC_UTILIZATION_SAMPLES:
		return nvml_device_sensor(status, VGPU_SENSOR_DECODER, valuep);
	case NVML_PROCESSOR_CLK_SAMPLES:
		return nvml_device_sensor(status, VGPU_SENSOR_CLOCK_SM, valuep);
	case NVML_MEMORY_CLK_SAMPLES:
		return nvml_device_sensor(status, VGPU_SENSOR_CLOCK_MEMORY, valuep);
	default:
		return false;
	}
}

/* One sample, the last: without room for it the caller asks how much to provide. */
nvmlReturn_t answer_nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
	unsigned long long lastSeenTimeStamp, nvmlValueType_t *sampleValType,
	unsigned int *sampleCount, nvmlSample_t *samples)
{
	struct vgpu_status_device status;
	uint64_t updated_us;
	nvmlReturn_t result;
	int64_t value;

	if ((unsigned int)type >= NVML_SAMPLINGTYPE_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = nvml_device_read(device, &status, &updated_us);
	if (result != NVML_SUCCESS)
		return result;
	if (!value_of(&status, type, &value))
		return NVML_ERROR_NOT_SUPPORTED;
	*sampleValType = NVML_VALUE_TYPE_UNSIGNED_INT;
	if (!samples) {
		*sampleCount = 1;
		return NVML_SUCCESS;
	}
	if (!*sampleCount)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (updated_us <= lastSeenTimeStamp)
		return NVML_ERROR_NOT_FOUND;
	samples[0] = (nvmlSample_t){
		.timeStamp = updated_us,
		.sampleValue.uiVal = (unsigned int)value,
	};
	*sampleCount = 1;
	return NVML_SUCCESS;
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
