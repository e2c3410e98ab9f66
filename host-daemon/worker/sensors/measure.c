/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measure: reads all sensors once
 *
 * What a device or a library does not have is unknown, whatever the error.
 */

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "worker/sensors/measure.h"

#define PROCESSES_OF_DEVICE_MAX 256u

/* Calls a function if the library has it. */
#define ASK(_nvml, _name, ...)                                                           \
	((_nvml)->_name && (_nvml)->_name(__VA_ARGS__) == NVML_SUCCESS)

static void set(
	struct sensors_device *device, enum vgpu_status_sensor sensor, int64_t value)
{
	device->known |= (uint64_t)1 << sensor;
	device->values[sensor] = value;
}

static void measure_threshold(const struct nvml *nvml, nvmlDevice_t handle,
	struct sensors_device *device, nvmlTemperatureThresholds_t threshold,
	enum vgpu_status_sensor sensor)
{
	unsigned int value;

	if (ASK(nvml, nvmlDeviceGetTemperatureThreshold, handle, threshold, &value))
		set(device, sensor, value);
}

static void measure_heat(
	const struct nvml *nvml, nvmlDevice_t handle, struct sensors_device *device)
{
	nvmlFieldValue_t memory = { .fieldId = NVML_FI_DEV_MEMORY_TEMP };
	unsigned int value;

	if (ASK(nvml, nvmlDeviceGetTemperature, handle, NVML_TEMPERATURE_GPU, &value))
		set(device, VGPU_SENSOR_TEMPERATURE, value);
	measure_threshold(nvml, handle, device, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,
		VGPU_SENSOR_TEMPERATURE_SLOWDOWN);
	measure_threshold(nvml, handle, device, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN,
		VGPU_SENSOR_TEMPERATURE_SHUTDOWN);
	measure_threshold(nvml, handle, device, NVML_TEMPERATURE_THRESHOLD_MEM_MAX,
		VGPU_SENSOR_TEMPERATURE_MEMORY_MAX);
	measure_threshold(nvml, handle, device, NVML_TEMPERATURE_THRESHOLD_GPU_MAX,
		VGPU_SENSOR_TEMPERATURE_MAX);
	if (ASK(nvml, nvmlDeviceGetFieldValues, handle, 1, &memory) &&
		memory.nvmlReturn == NVML_SUCCESS)
		set(device, VGPU_SENSOR_TEMPERATURE_MEMORY, memory.value.uiVal);
	if (ASK(nvml, nvmlDeviceGetFanSpeed, handle, &value))
		set(device, VGPU_SENSOR_FAN, value);
	if (ASK(nvml, nvmlDeviceGetNumFans, handle, &value))
		set(device, VGPU_SENSOR_FANS, value);
}

static void measure_power(
	const struct nvml *nvml, nvmlDevice_t handle, struct sensors_device *device)
{
	unsigned long long energy;
	unsigned int value, max;

	if (ASK(nvml, nvmlDeviceGetPowerUsage, handle, &value))
		set(device, VGPU_SENSOR_POWER, value);
	if (ASK(nvml, nvmlDeviceGetEnforcedPowerLimit, handle, &value))
		set(device, VGPU_SENSOR_POWER_LIMIT, value);
	if (ASK(nvml, nvmlDeviceGetPowerManagementDefaultLimit, handle, &value))
		set(device, VGPU_SENSOR_POWER_LIMIT_DEFAULT, value);
	if (ASK(nvml, nvmlDeviceGetPowerManagementLimitConstraints, handle, &value,
		    &max)) {
		set(device, VGPU_SENSOR_POWER_LIMIT_MIN, value);
		set(device, VGPU_SENSOR_POWER_LIMIT_MAX, max);
	}
	if (ASK(nvml, nvmlDeviceGetTotalEnergyConsumption, handle, &energy))
		set(device, VGPU_SENSOR_ENERGY, (int64_t)energy);
}

static void measure_clocks(
	const struct nvml *nvml, nvmlDevice_t handle, struct sensors_device *device)
{
	static const struct {
		nvmlClockType_t type;
		enum vgpu_status_sensor now, max;
	} clocks[] = {
		{ NVML_CLOCK_GRAPHICS, VGPU_SENSOR_CLOCK_GRAPHICS,
			VGPU_SENSOR_CLOCK_MAX_GRAPHICS },
		{ NVML_CLOCK_SM, VGPU_SENSOR_CLOCK_SM, VGPU_SENSOR_CLOCK_MAX_SM },
		{ NVML_CLOCK_MEM, VGPU_SENSOR_CLOCK_MEMORY,
			VGPU_SENSOR_CLOCK_MAX_MEMORY },
		{ NVML_CLOCK_VIDEO, VGPU_SENSOR_CLOCK_VIDEO,
			VGPU_SENSOR_CLOCK_MAX_VIDEO },
	};
	unsigned long long reasons;
	nvmlPstates_t state;
	unsigned int value;

	for (unsigned int i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		if (ASK(nvml, nvmlDeviceGetClockInfo, handle, clocks[i].type, &value))
			set(device, clocks[i].now, value);
		if (ASK(nvml, nvmlDeviceGetMaxClockInfo, handle, clocks[i].type, &value))
			set(device, clocks[i].max, value);
	}
	if (ASK(nvml, nvmlDeviceGetCurrentClocksThrottleReasons, handle, &reasons))
		set(device, VGPU_SENSOR_CLOCK_EVENT_REASONS, (int64_t)reasons);
	if (ASK(nvml, nvmlDeviceGetSupportedClocksThrottleReasons, handle, &reasons))
		set(device, VGPU_SENSOR_CLOCK_EVENT_REASONS_POSSIBLE, (int64_t)reasons);
	if (ASK(nvml, nvmlDeviceGetPerformanceState, handle, &state))
		set(device, VGPU_SENSOR_PERFORMANCE_STATE, state);
}

/* The library takes some ms for each throughput. */
static void measure_link(
	const struct nvml *nvml, nvmlDevice_t handle, struct sensors_device *device)
{
	unsigned int value;

	if (ASK(nvml, nvmlDeviceGetCurrPcieLinkGeneration, handle, &value))
		set(device, VGPU_SENSOR_PCIE_GENERATION, value);
	if (ASK(nvml, nvmlDeviceGetCurrPcieLinkWidth, handle, &value))
		set(device, VGPU_SENSOR_PCIE_WIDTH, value);
	if (ASK(nvml, nvmlDeviceGetMaxPcieLinkGeneration, handle, &value))
		set(device, VGPU_SENSOR_PCIE_GENERATION_MAX, value);
	if (ASK(nvml, nvmlDeviceGetMaxPcieLinkWidth, handle, &value))
		set(device, VGPU_SENSOR_PCIE_WIDTH_MAX, value);
	if (ASK(nvml, nvmlDeviceGetPcieThroughput, handle, NVML_PCIE_UTIL_TX_BYTES,
		    &value))
		set(device, VGPU_SENSOR_PCIE_SENT, value);
	if (ASK(nvml, nvmlDeviceGetPcieThroughput, handle, NVML_PCIE_UTIL_RX_BYTES,
		    &value))
		set(device, VGPU_SENSOR_PCIE_RECEIVED, value);
	if (ASK(nvml, nvmlDeviceGetPcieReplayCounter, handle, &value))
		set(device, VGPU_SENSOR_PCIE_REPLAYS, value);
}

static void measure_errors(
	const struct nvml *nvml, nvmlDevice_t handle, struct sensors_device *device)
{
	static const struct {
		nvmlMemoryErrorType_t type;
		nvmlEccCounterType_t counter;
		enum vgpu_status_sensor sensor;
	} counters[] = {
		{ NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC,
			VGPU_SENSOR_ECC_CORRECTED },
		{ NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC,
			VGPU_SENSOR_ECC_UNCORRECTED },
		{ NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_AGGREGATE_ECC,
			VGPU_SENSOR_ECC_CORRECTED_EVER },
		{ NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_AGGREGATE_ECC,
			VGPU_SENSOR_ECC_UNCORRECTED_EVER },
	};
	nvmlEnableState_t current, pending;
	unsigned long long errors;

	if (ASK(nvml, nvmlDeviceGetEccMode, handle, &current, &pending))
		set(device, VGPU_SENSOR_ECC_MODE, current);
	for (unsigned int i = 0; i < sizeof(counters) / sizeof(*counters); i++)
		if (ASK(nvml, nvmlDeviceGetTotalEccErrors, handle, counters[i].type,
			    counters[i].counter, &errors))
			set(device, counters[i].sensor, (int64_t)errors);
}

/* The addresses are not wanted, so there is no room for them. */
static void measure_retired(const struct nvml *nvml, nvmlDevice_t handle,
	struct sensors_device *device, nvmlPageRetirementCause_t cause,
	enum vgpu_status_sensor sensor)
{
	nvmlReturn_t result = NVML_ERROR_FUNCTION_NOT_FOUND;
	unsigned int n = 0;

	if (nvml->nvmlDeviceGetRetiredPages)
		result = nvml->nvmlDeviceGetRetiredPages(handle, cause, &n, NULL);
	if (result == NVML_SUCCESS || result == NVML_ERROR_INSUFFICIENT_SIZE)
		set(device, sensor, n);
}

static void measure_repairs(
	const struct nvml *nvml, nvmlDevice_t handle, struct sensors_device *device)
{
	unsigned int corrected, uncorrected, is_pending, has_failed;
	nvmlEnableState_t pending;

	measure_retired(nvml, handle, device,
		NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
		VGPU_SENSOR_RETIRED_CORRECTED);
	measure_retired(nvml, handle, device,
		NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR,
		VGPU_SENSOR_RETIRED_UNCORRECTED);
	if (ASK(nvml, nvmlDeviceGetRetiredPagesPendingStatus, handle, &pending))
		set(device, VGPU_SENSOR_RETIRED_PENDING, pending);
	if (!ASK(nvml, nvmlDeviceGetRemappedRows, handle, &corrected, &uncorrected,
		    &is_pending, &has_failed))
		return;
	set(device, VGPU_SENSOR_REMAPPED_CORRECTED, corrected);
	set(device, VGPU_SENSOR_REMAPPED_UNCORRECTED, uncorrected);
	set(device, VGPU_SENSOR_REMAPPED_STATE,
		(is_pending ? 1 : 0) | (has_failed ? 2 : 0));
}

static void measure_engines(
	const struct nvml *nvml, nvmlDevice_t handle, struct sensors_device *device)
{
	unsigned int value, period;

	if (ASK(nvml, nvmlDeviceGetEncoderUtilization, handle, &value, &period))
		set(device, VGPU_SENSOR_ENCODER, value);
	if (ASK(nvml, nvmlDeviceGetDecoderUtilization, handle, &value, &period))
		set(device, VGPU_SENSOR_DECODER, value);
	if (ASK(nvml, nvmlDeviceGetJpgUtilization, handle, &value, &period))
		set(device, VGPU_SENSOR_JPEG, value);
	if (ASK(nvml, nvmlDeviceGetOfaUtilization, handle, &value, &period))
		set(device, VGPU_SENSOR_OFA, value);
}

/*
 * Processes
 */

static struct sensors_process *find_process(
	struct sensors_page *page, uint32_t device, uint32_t pid)
{
	struct sensors_process *process;

	for (uint32_t i = 0; i < page->n_processes; i++)
		if (page->processes[i].pid == pid && page->processes[i].device == device)
			return &page->processes[i];
	if (page->n_processes == SENSORS_PROCESSES_MAX)
		return NULL;
	process = &page->processes[page->n_processes++];
	*process = (struct sensors_process){
		.pid = pid,
		.device = device,
		.utilisation = VGPU_STATUS_UNKNOWN,
		.memory_utilisation = VGPU_STATUS_UNKNOWN,
	};
	return process;
}

static void measure_memory(const struct nvml *nvml, nvmlDevice_t handle,
	struct sensors_page *page, uint32_t device)
{
	static nvmlProcessInfo_t infos[PROCESSES_OF_DEVICE_MAX];
	unsigned int n = PROCESSES_OF_DEVICE_MAX;
	struct sensors_process *process;

	if (!ASK(nvml, nvmlDeviceGetComputeRunningProcesses_v3, handle, &n, infos))
		return;
	for (unsigned int i = 0; i < n && i < PROCESSES_OF_DEVICE_MAX; i++) {
		process = find_process(page, device, infos[i].pid);
		/* All ones: not available. */
		if (process && infos[i].usedGpuMemory != ~0ull)
			process->memory = infos[i].usedGpuMemory;
	}
}

static void set_idle(struct sensors_page *page, uint32_t device)
{
	for (uint32_t i = 0; i < page->n_processes; i++) {
		if (page->processes[i].device != device)
			continue;
		page->processes[i].utilisation = 0;
		page->processes[i].memory_utilisation = 0;
	}
}

/* The samples of the last second, by the card's own clock: the newest of all processes
 * tells the time. */
static void measure_utilisation(const struct nvml *nvml, nvmlDevice_t handle,
	struct sensors_page *page, uint32_t device)
{
	static nvmlProcessUtilizationSample_t samples[PROCESSES_OF_DEVICE_MAX];
	unsigned int n = PROCESSES_OF_DEVICE_MAX;
	unsigned long long newest = 0;
	struct sensors_process *process;
	nvmlReturn_t result = NVML_ERROR_FUNCTION_NOT_FOUND;

	if (nvml->nvmlDeviceGetProcessUtilization)
		result = nvml->nvmlDeviceGetProcessUtilization(handle, samples, &n, 0);
	if (result == NVML_ERROR_NOT_FOUND)
		n = 0;
	else if (result != NVML_SUCCESS)
		return;
	set_idle(page, device);
	n = n < PROCESSES_OF_DEVICE_MAX ? n : PROCESSES_OF_DEVICE_MAX;
	for (unsigned int i = 0; i < n; i++)
		if (samples[i].timeStamp > newest)
			newest = samples[i].timeStamp;
	for (unsigned int i = 0; i < n; i++) {
		process = find_process(page, device, samples[i].pid);
		if (!process || newest - samples[i].timeStamp > 1000000)
			continue;
		process->utilisation = samples[i].smUtil;
		process->memory_utilisation = samples[i].memUtil;
	}
}

/*
 * Devices
 */

/* "GPU-" and 32 digits with dashes. Return: false for another form. */
static bool parse_uuid(const char *text, uint8_t uuid[16])
{
	unsigned int n = 0;

	if (strncmp(text, "GPU-", 4))
		return false;
	for (text += 4; *text; text++) {
		const int digit = tolower((unsigned char)*text);

		if (digit == '-')
			continue;
		if (!isxdigit(digit) || n == 32)
			return false;
		uuid[n / 2] =
			(uint8_t)(uuid[n / 2] << 4 |
				  (isdigit(digit) ? digit - '0' : digit - 'a' + 10));
		n++;
	}
	return n == 32;
}

/* Handles of those that were measured. */
static nvmlDevice_t handles[VGPU_DEVICES_MAX];

static void measure_device(
	const struct nvml *nvml, struct sensors_page *page, unsigned int i)
{
	struct sensors_device *device = &page->devices[page->n_devices];
	char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	nvmlDevice_t handle;

	*device = (struct sensors_device){ .known = 0 };
	if (nvml->nvmlDeviceGetHandleByIndex_v2(i, &handle) != NVML_SUCCESS ||
		nvml->nvmlDeviceGetUUID(handle, uuid, sizeof(uuid)) != NVML_SUCCESS ||
		!parse_uuid(uuid, device->uuid))
		return;
	measure_heat(nvml, handle, device);
	measure_power(nvml, handle, device);
	measure_clocks(nvml, handle, device);
	measure_link(nvml, handle, device);
	measure_errors(nvml, handle, device);
	measure_repairs(nvml, handle, device);
	measure_engines(nvml, handle, device);
	measure_memory(nvml, handle, page, page->n_devices);
	measure_utilisation(nvml, handle, page, page->n_devices);
	handles[page->n_devices++] = handle;
}

static void measure_distances(const struct nvml *nvml, struct sensors_page *page)
{
	nvmlGpuTopologyLevel_t level;

	for (uint32_t i = 0; i < page->n_devices; i++)
		for (uint32_t k = 0; k < page->n_devices; k++)
			if (i != k &&
				ASK(nvml, nvmlDeviceGetTopologyCommonAncestor, handles[i],
					handles[k], &level) &&
				level >= 0 && level <= NVML_TOPOLOGY_SYSTEM)
				page->distances[i][k] = VGPU_STATUS_DISTANCE(level);
}

void measure(const struct nvml *nvml, struct sensors_page *page)
{
	unsigned int n = 0;

	memset(page, 0, sizeof(*page));
	nvml->nvmlSystemGetDriverVersion(
		page->driver_version, sizeof(page->driver_version));
	if (nvml->nvmlDeviceGetCount_v2(&n) != NVML_SUCCESS)
		return;
	for (unsigned int i = 0; i < n && page->n_devices < VGPU_DEVICES_MAX; i++)
		measure_device(nvml, page, i);
	measure_distances(nvml, page);
}
