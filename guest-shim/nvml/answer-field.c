/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: values of a device by number, each with a code of its own
 */

#include <stdbool.h>
#include <stddef.h>

#include "nvml/device.h"
#include "nvml/g-nvml-answers.h"

/* The values that the host measures. */
static const struct {
	unsigned int field;
	enum vgpu_status_sensor sensor;
	nvmlValueType_t type;
	/* Of a sensor with several values: the place of the first bit, and the mask. */
	unsigned int shift;
	int64_t mask;
} fields[] = {
	{ NVML_FI_DEV_ECC_CURRENT, VGPU_SENSOR_ECC_MODE, NVML_VALUE_TYPE_UNSIGNED_INT },
	{ NVML_FI_DEV_ECC_PENDING, VGPU_SENSOR_ECC_MODE, NVML_VALUE_TYPE_UNSIGNED_INT },
	{ NVML_FI_DEV_ECC_SBE_VOL_TOTAL, VGPU_SENSOR_ECC_CORRECTED,
		NVML_VALUE_TYPE_UNSIGNED_LONG_LONG },
	{ NVML_FI_DEV_ECC_DBE_VOL_TOTAL, VGPU_SENSOR_ECC_UNCORRECTED,
		NVML_VALUE_TYPE_UNSIGNED_LONG_LONG },
	{ NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, VGPU_SENSOR_ENERGY,
		NVML_VALUE_TYPE_UNSIGNED_LONG_LONG },
	{ NVML_FI_DEV_POWER_AVERAGE, VGPU_SENSOR_POWER, NVML_VALUE_TYPE_UNSIGNED_INT },
	{ NVML_FI_DEV_POWER_INSTANT, VGPU_SENSOR_POWER, NVML_VALUE_TYPE_UNSIGNED_INT },
	{ NVML_FI_DEV_POWER_MIN_LIMIT, VGPU_SENSOR_POWER_LIMIT_MIN,
		NVML_VALUE_TYPE_UNSIGNED_INT },
	{ NVML_FI_DEV_POWER_MAX_LIMIT, VGPU_SENSOR_POWER_LIMIT_MAX,
		NVML_VALUE_TYPE_UNSIGNED_INT },
	{ NVML_FI_DEV_POWER_DEFAULT_LIMIT, VGPU_SENSOR_POWER_LIMIT_DEFAULT,
		NVML_VALUE_TYPE_UNSIGNED_INT },
	{ NVML_FI_DEV_POWER_CURRENT_LIMIT, VGPU_SENSOR_POWER_LIMIT,
		NVML_VALUE_TYPE_UNSIGNED_INT },
	{ NVML_FI_DEV_ECC_SBE_AGG_TOTAL, VGPU_SENSOR_ECC_CORRECTED_EVER,
		NVML_VALUE_TYPE_UNSIGNED_LONG_LONG },
	{ NVML_FI_DEV_ECC_DBE_AGG_TOTAL, VGPU_SENSOR_ECC_UNCORRECTED_EVER,
		NVML_VALUE_TYPE_UNSIGNED_LONG_LONG },
	{ NVML_FI_DEV_MEMORY_TEMP, VGPU_SENSOR_TEMPERATURE_MEMORY,
		NVML_VALUE_TYPE_UNSIGNED_INT },
	{ NVML_FI_DEV_PCIE_REPLAY_COUNTER, VGPU_SENSOR_PCIE_REPLAYS,
		NVML_VALUE_TYPE_UNSIGNED_INT },
	{ NVML_FI_DEV_RETIRED_SBE, VGPU_SENSOR_RETIRED_CORRECTED,
		NVML_VALUE_TYPE_UNSIGNED_INT },
	{ NVML_FI_DEV_RETIRED_DBE, VGPU_SENSOR_RETIRED_UNCORRECTED,
		NVML_VALUE_TYPE_UNSIGNED_INT },
	{ NVML_FI_DEV_RETIRED_PENDING, VGPU_SENSOR_RETIRED_PENDING,
		NVML_VALUE_TYPE_UNSIGNED_INT },
	{ NVML_FI_DEV_REMAPPED_COR, VGPU_SENSOR_REMAPPED_CORRECTED,
		NVML_VALUE_TYPE_UNSIGNED_INT },
	{ NVML_FI_DEV_REMAPPED_UNC, VGPU_SENSOR_REMAPPED_UNCORRECTED,
		NVML_VALUE_TYPE_UNSIGNED_INT },
	{ NVML_FI_DEV_REMAPPED_PENDING, VGPU_SENSOR_REMAPPED_STATE,
		NVML_VALUE_TYPE_UNSIGNED_INT, 0, 1 },
	{ NVML_FI_DEV_REMAPPED_FAILURE, VGPU_SENSOR_REMAPPED_STATE,
		NVML_VALUE_TYPE_UNSIGNED_INT, 1, 1 },
};

static void fill(
	nvmlFieldValue_t *value, const struct vgpu_status_device *status, uint64_t now_us)
{
	int64_t number;

	value->timestamp = (long long)now_us;
	value->latencyUsec = 0;
	value->nvmlReturn = value->fieldId && value->fieldId < NVML_FI_MAX
				    ? NVML_ERROR_NOT_SUPPORTED
				    : NVML_ERROR_INVALID_ARGUMENT;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (fields[i].field != value->fieldId ||
			!nvml_device_sensor(status, fields[i].sensor, &number))
			continue;
		value->nvmlReturn = NVML_SUCCESS;
		value->valueType = fields[i].type;
		if (fields[i].mask)
			number = number >> fields[i].shift & fields[i].mask;
		value->value = (nvmlValue_t){ .ullVal = (unsigned long long)number };
	}
}

nvmlReturn_t answer_nvmlDeviceGetFieldValues(
	nvmlDevice_t device, int valuesCount, nvmlFieldValue_t *values)
{
	struct vgpu_status_device status;
	uint64_t updated_us;
	nvmlReturn_t result;

	if (valuesCount <= 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = nvml_device_read(device, &status, &updated_us);
	for (int i = 0; i < valuesCount && result == NVML_SUCCESS; i++)
		fill(&values[i], &status, updated_us);
	return result;
}
