/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Get: temperature, power and clocks, and values by number
 */

#include "smi/get.h"

/*
 * Values by number
 */

static nvmlReturn_t ask(nvmlDevice_t device, int number, double *resultp)
{
	nvmlFieldValue_t value = { .fieldId = (unsigned int)number };
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetFieldValues, device, 1, &value);

	if (result == NVML_SUCCESS)
		result = value.nvmlReturn;
	*resultp = value.valueType == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
			   ? (double)value.value.ullVal
			   : value.value.uiVal;
	return result;
}

void smi_get_value(nvmlDevice_t device, struct smi_value *value, int argument)
{
	double number;
	nvmlReturn_t result = ask(device, argument, &number);

	smi_value_set_number(value, result, number);
}

void smi_get_value_watts(nvmlDevice_t device, struct smi_value *value, int argument)
{
	double number;
	nvmlReturn_t result = ask(device, argument, &number);

	smi_value_set_number(value, result, number / 1000);
	value->n_decimals = 2;
}

void smi_get_value_yes_no(nvmlDevice_t device, struct smi_value *value, int argument)
{
	double number;
	nvmlReturn_t result = ask(device, argument, &number);

	smi_value_set_text(value, result, "%s", number > 0 ? "Yes" : "No");
}

/*
 * Temperature
 */

void smi_get_temperature(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int degrees = 0;
	nvmlReturn_t result = SMI_CALL(
		nvmlDeviceGetTemperature, device, NVML_TEMPERATURE_GPU, &degrees);

	smi_value_set_number(value, result, degrees);
}

void smi_get_margin(nvmlDevice_t device, struct smi_value *value, int argument)
{
	nvmlMarginTemperature_t margin = { .version = nvmlMarginTemperature_v1 };
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetMarginTemperature, device, &margin);

	smi_value_set_number(value, result, margin.marginTemperature);
}

void smi_get_threshold(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int degrees = 0;
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetTemperatureThreshold, device,
		(nvmlTemperatureThresholds_t)argument, &degrees);

	smi_value_set_number(value, result, degrees);
}

/*
 * Power
 */

void smi_get_power_bound(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int bounds[2] = {};
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetPowerManagementLimitConstraints,
		device, &bounds[0], &bounds[1]);

	smi_value_set_number(value, result, bounds[argument] / 1000.0);
	value->n_decimals = 2;
}

void smi_get_energy(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned long long energy = 0;
	nvmlReturn_t result =
		SMI_CALL(nvmlDeviceGetTotalEnergyConsumption, device, &energy);

	smi_value_set_number(value, result, (double)energy / 1000);
	value->n_decimals = 3;
}

/*
 * Clocks
 */

void smi_get_pstate(nvmlDevice_t device, struct smi_value *value, int argument)
{
	nvmlPstates_t state = NVML_PSTATE_UNKNOWN;
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetPerformanceState, device, &state);

	if (result == NVML_SUCCESS && state == NVML_PSTATE_UNKNOWN)
		result = NVML_ERROR_NOT_SUPPORTED;
	smi_value_set_text(value, result, "P%d", (int)state);
}

void smi_get_reasons(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned long long reasons = 0;
	nvmlReturn_t result =
		argument ? SMI_CALL(nvmlDeviceGetSupportedClocksThrottleReasons, device,
				   &reasons)
			 : SMI_CALL(nvmlDeviceGetCurrentClocksThrottleReasons, device,
				   &reasons);

	smi_value_set_text(value, result, "0x%016llX", reasons);
}

void smi_get_reason(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned long long reasons = 0;
	nvmlReturn_t result =
		SMI_CALL(nvmlDeviceGetCurrentClocksThrottleReasons, device, &reasons);

	smi_value_set_text(value, result, "%s",
		reasons & (unsigned int)argument ? "Active" : "Not Active");
}

void smi_get_clock(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int mhz = 0;
	nvmlReturn_t result =
		SMI_CALL(nvmlDeviceGetClockInfo, device, (nvmlClockType_t)argument, &mhz);

	smi_value_set_number(value, result, mhz);
}

void smi_get_max_clock(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int mhz = 0;
	nvmlReturn_t result = SMI_CALL(
		nvmlDeviceGetMaxClockInfo, device, (nvmlClockType_t)argument, &mhz);

	smi_value_set_number(value, result, mhz);
}

void smi_get_application_clock(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int mhz = 0;
	nvmlReturn_t result = SMI_CALL(
		nvmlDeviceGetApplicationsClock, device, (nvmlClockType_t)argument, &mhz);

	smi_value_set_number(value, result, mhz);
}

void smi_get_default_clock(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int mhz = 0;
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetDefaultApplicationsClock, device,
		(nvmlClockType_t)argument, &mhz);

	smi_value_set_number(value, result, mhz);
}
