/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: clocks, temperature, power, fans; what the host measures
 */

#include "nvml/device.h"
#include "nvml/g-nvml-answers.h"

static_assert(VGPU_SENSOR_CLOCK_GRAPHICS + NVML_CLOCK_VIDEO == VGPU_SENSOR_CLOCK_VIDEO,
	"clocks are in NVML's order");
static_assert(
	VGPU_SENSOR_CLOCK_MAX_GRAPHICS + NVML_CLOCK_VIDEO == VGPU_SENSOR_CLOCK_MAX_VIDEO,
	"clocks are in NVML's order");

nvmlReturn_t answer_nvmlDeviceGetClockInfo(
	nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
	if ((unsigned int)type >= NVML_CLOCK_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	return nvml_device_answer(device, VGPU_SENSOR_CLOCK_GRAPHICS + type, clock);
}

/* Without NVML the driver knows two of them, by attributes in kHz. */
static nvmlReturn_t max_of_attribute(
	nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
	struct vgpu_status_device status;
	nvmlReturn_t result = nvml_device_read(device, &status, NULL);
	int khz;

	if (result != NVML_SUCCESS)
		return result;
	if (type == NVML_CLOCK_VIDEO ||
		!nvml_device_attribute(&status,
			type == NVML_CLOCK_MEM ? CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE
					       : CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
			&khz) ||
		khz <= 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*clock = (unsigned int)khz / 1000;
	return NVML_SUCCESS;
}

nvmlReturn_t answer_nvmlDeviceGetMaxClockInfo(
	nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
	nvmlReturn_t result;

	if ((unsigned int)type >= NVML_CLOCK_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = nvml_device_answer(device, VGPU_SENSOR_CLOCK_MAX_GRAPHICS + type, clock);
	if (result == NVML_ERROR_NOT_SUPPORTED)
		result = max_of_attribute(device, type, clock);
	return result;
}

nvmlReturn_t answer_nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t clockType,
	nvmlClockId_t clockId, unsigned int *clockMHz)
{
	if ((unsigned int)clockType >= NVML_CLOCK_COUNT ||
		(unsigned int)clockId >= NVML_CLOCK_ID_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (clockId != NVML_CLOCK_ID_CURRENT)
		return NVML_ERROR_NOT_SUPPORTED;
	return answer_nvmlDeviceGetClockInfo(device, clockType, clockMHz);
}

nvmlReturn_t answer_nvmlDeviceGetCurrentClocksEventReasons(
	nvmlDevice_t device, unsigned long long *clocksEventReasons)
{
	return nvml_device_answer_64(
		device, VGPU_SENSOR_CLOCK_EVENT_REASONS, clocksEventReasons);
}

nvmlReturn_t answer_nvmlDeviceGetSupportedClocksEventReasons(
	nvmlDevice_t device, unsigned long long *supportedClocksEventReasons)
{
	return nvml_device_answer_64(device, VGPU_SENSOR_CLOCK_EVENT_REASONS_POSSIBLE,
		supportedClocksEventReasons);
}

nvmlReturn_t answer_nvmlDeviceGetPerformanceState(
	nvmlDevice_t device, nvmlPstates_t *pState)
{
	unsigned int state;
	nvmlReturn_t result =
		nvml_device_answer(device, VGPU_SENSOR_PERFORMANCE_STATE, &state);

	if (result == NVML_SUCCESS)
		*pState = state <= NVML_PSTATE_15 ? (nvmlPstates_t)state
						  : NVML_PSTATE_UNKNOWN;
	return result;
}

nvmlReturn_t answer_nvmlDeviceGetTemperature(
	nvmlDevice_t device, nvmlTemperatureSensors_t sensorType, unsigned int *temp)
{
	if ((unsigned int)sensorType >= NVML_TEMPERATURE_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	return nvml_device_answer(device, VGPU_SENSOR_TEMPERATURE, temp);
}

nvmlReturn_t answer_nvmlDeviceGetTemperatureV(
	nvmlDevice_t device, nvmlTemperature_t *temperature)
{
	unsigned int value;
	nvmlReturn_t result;

	if (temperature->version != nvmlTemperature_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	result = answer_nvmlDeviceGetTemperature(device, temperature->sensorType, &value);
	if (result == NVML_SUCCESS)
		temperature->temperature = (int)value;
	return result;
}

nvmlReturn_t answer_nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device,
	nvmlTemperatureThresholds_t thresholdType, unsigned int *temp)
{
	if ((unsigned int)thresholdType >= NVML_TEMPERATURE_THRESHOLD_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	switch (thresholdType) {
	case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN:
		return nvml_device_answer(device, VGPU_SENSOR_TEMPERATURE_SHUTDOWN, temp);
	case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN:
		return nvml_device_answer(device, VGPU_SENSOR_TEMPERATURE_SLOWDOWN, temp);
	case NVML_TEMPERATURE_THRESHOLD_MEM_MAX:
		return nvml_device_answer(
			device, VGPU_SENSOR_TEMPERATURE_MEMORY_MAX, temp);
	case NVML_TEMPERATURE_THRESHOLD_GPU_MAX:
		return nvml_device_answer(device, VGPU_SENSOR_TEMPERATURE_MAX, temp);
	default:
		return NVML_ERROR_NOT_SUPPORTED;
	}
}

nvmlReturn_t answer_nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power)
{
	return nvml_device_answer(device, VGPU_SENSOR_POWER, power);
}

nvmlReturn_t answer_nvmlDeviceGetPowerManagementLimit(
	nvmlDevice_t device, unsigned int *limit)
{
	return nvml_device_answer(device, VGPU_SENSOR_POWER_LIMIT, limit);
}

nvmlReturn_t answer_nvmlDeviceGetEnforcedPowerLimit(
	nvmlDevice_t device, unsigned int *limit)
{
	return nvml_device_answer(device, VGPU_SENSOR_POWER_LIMIT, limit);
}

nvmlReturn_t answer_nvmlDeviceGetPowerManagementDefaultLimit(
	nvmlDevice_t device, unsigned int *defaultLimit)
{
	return nvml_device_answer(device, VGPU_SENSOR_POWER_LIMIT_DEFAULT, defaultLimit);
}

nvmlReturn_t answer_nvmlDeviceGetPowerManagementLimitConstraints(
	nvmlDevice_t device, unsigned int *minLimit, unsigned int *maxLimit)
{
	nvmlReturn_t result =
		nvml_device_answer(device, VGPU_SENSOR_POWER_LIMIT_MIN, minLimit);

	if (result == NVML_SUCCESS)
		result =
			nvml_device_answer(device, VGPU_SENSOR_POWER_LIMIT_MAX, maxLimit);
	return result;
}

/* A device with a limit is one that keeps it. */
nvmlReturn_t answer_nvmlDeviceGetPowerManagementMode(
	nvmlDevice_t device, nvmlEnableState_t *mode)
{
	unsigned int limit;
	nvmlReturn_t result = nvml_device_answer(device, VGPU_SENSOR_POWER_LIMIT, &limit);

	if (result == NVML_SUCCESS)
		*mode = NVML_FEATURE_ENABLED;
	return result;
}

nvmlReturn_t answer_nvmlDeviceGetTotalEnergyConsumption(
	nvmlDevice_t device, unsigned long long *energy)
{
	return nvml_device_answer_64(device, VGPU_SENSOR_ENERGY, energy);
}

nvmlReturn_t answer_nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *speed)
{
	return nvml_device_answer(device, VGPU_SENSOR_FAN, speed);
}

/* The host tells the speed of one. */
nvmlReturn_t answer_nvmlDeviceGetFanSpeed_v2(
	nvmlDevice_t device, unsigned int fan, unsigned int *speed)
{
	nvmlReturn_t result = nvml_device_answer(device, VGPU_SENSOR_FAN, speed);

	return result == NVML_SUCCESS && fan ? NVML_ERROR_INVALID_ARGUMENT : result;
}

nvmlReturn_t answer_nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned int *numFans)
{
	return nvml_device_answer(device, VGPU_SENSOR_FANS, numFans);
}
