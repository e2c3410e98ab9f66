/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sensors, memory, values by number; texts of codes
 */

#include <string.h>

#include "test.h"
#include "vgpu/nvml.h"

#include "page-double.h"

static struct vgpu_status *status;
static nvmlDevice_t device;

static void begin(void)
{
	status = page_double_start();
	check_eq(nvmlInit(), NVML_SUCCESS);
	check_eq(nvmlDeviceGetHandleByIndex(0, &device), NVML_SUCCESS);
}

static void end(void)
{
	check_eq(nvmlShutdown(), NVML_SUCCESS);
	page_double_finish();
}

static void set(enum vgpu_status_sensor sensor, int64_t value)
{
	page_double_begin();
	status->devices[0].sensors_known |= 1ull << sensor;
	status->devices[0].sensors[sensor] = value;
	page_double_end();
}

typedef nvmlReturn_t (*get_fn)(nvmlDevice_t device, unsigned int *value);

static nvmlReturn_t get_temperature(nvmlDevice_t of, unsigned int *value)
{
	return nvmlDeviceGetTemperature(of, NVML_TEMPERATURE_GPU, value);
}

static nvmlReturn_t get_shutdown(nvmlDevice_t of, unsigned int *value)
{
	return nvmlDeviceGetTemperatureThreshold(
		of, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN, value);
}

static nvmlReturn_t get_slowdown(nvmlDevice_t of, unsigned int *value)
{
	return nvmlDeviceGetTemperatureThreshold(
		of, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, value);
}

static nvmlReturn_t get_memory_clock(nvmlDevice_t of, unsigned int *value)
{
	return nvmlDeviceGetClockInfo(of, NVML_CLOCK_MEM, value);
}

static nvmlReturn_t get_video_clock(nvmlDevice_t of, unsigned int *value)
{
	return nvmlDeviceGetClock(of, NVML_CLOCK_VIDEO, NVML_CLOCK_ID_CURRENT, value);
}

static nvmlReturn_t get_max_video_clock(nvmlDevice_t of, unsigned int *value)
{
	return nvmlDeviceGetMaxClockInfo(of, NVML_CLOCK_VIDEO, value);
}

static nvmlReturn_t get_first_fan(nvmlDevice_t of, unsigned int *value)
{
	return nvmlDeviceGetFanSpeed_v2(of, 0, value);
}

static nvmlReturn_t get_state(nvmlDevice_t of, unsigned int *value)
{
	return nvmlDeviceGetPerformanceState(of, (nvmlPstates_t *)value);
}

static nvmlReturn_t get_decoder(nvmlDevice_t of, unsigned int *value)
{
	unsigned int period;

	return nvmlDeviceGetDecoderUtilization(of, value, &period);
}

static nvmlReturn_t get_reasons(nvmlDevice_t of, unsigned int *value)
{
	unsigned long long reasons = 0;
	nvmlReturn_t result = nvmlDeviceGetCurrentClocksEventReasons(of, &reasons);

	if (result == NVML_SUCCESS)
		*value = (unsigned int)reasons;
	return result;
}

static nvmlReturn_t get_energy(nvmlDevice_t of, unsigned int *value)
{
	unsigned long long energy = 0;
	nvmlReturn_t result = nvmlDeviceGetTotalEnergyConsumption(of, &energy);

	if (result == NVML_SUCCESS)
		*value = (unsigned int)energy;
	return result;
}

static nvmlReturn_t get_encoder(nvmlDevice_t of, unsigned int *value)
{
	unsigned int period;

	return nvmlDeviceGetEncoderUtilization(of, value, &period);
}

static nvmlReturn_t get_jpeg(nvmlDevice_t of, unsigned int *value)
{
	unsigned int period;

	return nvmlDeviceGetJpgUtilization(of, value, &period);
}

static nvmlReturn_t get_ofa(nvmlDevice_t of, unsigned int *value)
{
	unsigned int period;

	return nvmlDeviceGetOfaUtilization(of, value, &period);
}

static nvmlReturn_t get_max_memory(nvmlDevice_t of, unsigned int *value)
{
	return nvmlDeviceGetTemperatureThreshold(
		of, NVML_TEMPERATURE_THRESHOLD_MEM_MAX, value);
}

static nvmlReturn_t get_max_gpu(nvmlDevice_t of, unsigned int *value)
{
	return nvmlDeviceGetTemperatureThreshold(
		of, NVML_TEMPERATURE_THRESHOLD_GPU_MAX, value);
}

static nvmlReturn_t get_sent(nvmlDevice_t of, unsigned int *value)
{
	return nvmlDeviceGetPcieThroughput(of, NVML_PCIE_UTIL_TX_BYTES, value);
}

static nvmlReturn_t get_received(nvmlDevice_t of, unsigned int *value)
{
	return nvmlDeviceGetPcieThroughput(of, NVML_PCIE_UTIL_RX_BYTES, value);
}

static nvmlReturn_t get_possible_reasons(nvmlDevice_t of, unsigned int *value)
{
	unsigned long long reasons = 0;
	nvmlReturn_t result = nvmlDeviceGetSupportedClocksEventReasons(of, &reasons);

	if (result == NVML_SUCCESS)
		*value = (unsigned int)reasons;
	return result;
}

TEST(a_sensor_is_not_supported_until_the_host_knows_it)
{
	static const struct {
		get_fn get;
		enum vgpu_status_sensor sensor;
	} rows[] = {
		{ get_temperature, VGPU_SENSOR_TEMPERATURE },
		{ get_slowdown, VGPU_SENSOR_TEMPERATURE_SLOWDOWN },
		{ get_shutdown, VGPU_SENSOR_TEMPERATURE_SHUTDOWN },
		{ nvmlDeviceGetFanSpeed, VGPU_SENSOR_FAN },
		{ get_first_fan, VGPU_SENSOR_FAN },
		{ nvmlDeviceGetPowerUsage, VGPU_SENSOR_POWER },
		{ nvmlDeviceGetPowerManagementLimit, VGPU_SENSOR_POWER_LIMIT },
		{ nvmlDeviceGetEnforcedPowerLimit, VGPU_SENSOR_POWER_LIMIT },
		{ nvmlDeviceGetPowerManagementDefaultLimit,
			VGPU_SENSOR_POWER_LIMIT_DEFAULT },
		{ get_memory_clock, VGPU_SENSOR_CLOCK_MEMORY },
		{ get_video_clock, VGPU_SENSOR_CLOCK_VIDEO },
		{ get_max_video_clock, VGPU_SENSOR_CLOCK_MAX_VIDEO },
		{ get_state, VGPU_SENSOR_PERFORMANCE_STATE },
		{ nvmlDeviceGetCurrPcieLinkGeneration, VGPU_SENSOR_PCIE_GENERATION },
		{ nvmlDeviceGetCurrPcieLinkWidth, VGPU_SENSOR_PCIE_WIDTH },
		{ nvmlDeviceGetMaxPcieLinkGeneration, VGPU_SENSOR_PCIE_GENERATION_MAX },
		{ nvmlDeviceGetMaxPcieLinkWidth, VGPU_SENSOR_PCIE_WIDTH_MAX },
		{ get_encoder, VGPU_SENSOR_ENCODER },
		{ get_decoder, VGPU_SENSOR_DECODER },
		{ get_reasons, VGPU_SENSOR_CLOCK_EVENT_REASONS },
		{ get_energy, VGPU_SENSOR_ENERGY },
		{ get_jpeg, VGPU_SENSOR_JPEG },
		{ get_ofa, VGPU_SENSOR_OFA },
		{ get_max_memory, VGPU_SENSOR_TEMPERATURE_MEMORY_MAX },
		{ get_max_gpu, VGPU_SENSOR_TEMPERATURE_MAX },
		{ get_sent, VGPU_SENSOR_PCIE_SENT },
		{ get_received, VGPU_SENSOR_PCIE_RECEIVED },
		{ nvmlDeviceGetPcieReplayCounter, VGPU_SENSOR_PCIE_REPLAYS },
		{ nvmlDeviceGetNumFans, VGPU_SENSOR_FANS },
		{ get_possible_reasons, VGPU_SENSOR_CLOCK_EVENT_REASONS_POSSIBLE },
	};

	begin();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned int value = 999;

		page_double_begin();
		status->devices[0].sensors_known = 0;
		page_double_end();
		check_eq(rows[i].get(device, &value), NVML_ERROR_NOT_SUPPORTED);
		set(rows[i].sensor, 7);
		check_eq(rows[i].get(device, &value), NVML_SUCCESS);
		check_eq(value, 7);
	}
	end();
}

TEST(a_limit_of_power_has_bounds)
{
	unsigned int least = 9, most = 9;
	nvmlEnableState_t mode;

	begin();
	check_eq(nvmlDeviceGetPowerManagementMode(device, &mode),
		NVML_ERROR_NOT_SUPPORTED);
	set(VGPU_SENSOR_POWER_LIMIT_MIN, 100000);
	check_eq(nvmlDeviceGetPowerManagementLimitConstraints(device, &least, &most),
		NVML_ERROR_NOT_SUPPORTED);
	set(VGPU_SENSOR_POWER_LIMIT_MAX, 300000);
	check_eq(nvmlDeviceGetPowerManagementLimitConstraints(device, &least, &most),
		NVML_SUCCESS);
	check_eq(least, 100000);
	check_eq(most, 300000);
	set(VGPU_SENSOR_POWER_LIMIT, 250000);
	check_eq(nvmlDeviceGetPowerManagementMode(device, &mode), NVML_SUCCESS);
	check_eq(mode, NVML_FEATURE_ENABLED);
	end();
}

TEST(what_a_sensor_is_asked_for_is_checked)
{
	nvmlTemperature_t temperature = { .version = nvmlTemperature_v1 };
	unsigned int value;

	begin();
	set(VGPU_SENSOR_TEMPERATURE, 51);
	check_eq(nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_COUNT, &value),
		NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlDeviceGetTemperatureThreshold(
			 device, NVML_TEMPERATURE_THRESHOLD_COUNT, &value),
		NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlDeviceGetClockInfo(device, NVML_CLOCK_COUNT, &value),
		NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlDeviceGetClock(device, NVML_CLOCK_SM, NVML_CLOCK_ID_COUNT, &value),
		NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlDeviceGetTemperatureV(device, &temperature), NVML_SUCCESS);
	check_eq(temperature.temperature, 51);
	temperature.version = 3;
	check_eq(nvmlDeviceGetTemperatureV(device, &temperature),
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	/* Without NVML on the host the driver's attribute, in kHz. */
	check_eq(nvmlDeviceGetMaxClockInfo(device, NVML_CLOCK_SM, &value), NVML_SUCCESS);
	check_eq(value, 1500);
	check_eq(nvmlDeviceGetMaxClockInfo(device, NVML_CLOCK_MEM, &value),
		NVML_ERROR_NOT_SUPPORTED);
	end();
}

TEST(the_speed_of_the_link_is_that_of_its_generation)
{
	unsigned int value;

	begin();
	check_eq(nvmlDeviceGetPcieSpeed(device, &value), NVML_ERROR_NOT_SUPPORTED);
	set(VGPU_SENSOR_PCIE_GENERATION, 4);
	set(VGPU_SENSOR_PCIE_GENERATION_MAX, 5);
	check_eq(nvmlDeviceGetPcieSpeed(device, &value), NVML_SUCCESS);
	check_eq(value, 16000);
	check_eq(nvmlDeviceGetPcieLinkMaxSpeed(device, &value), NVML_SUCCESS);
	check_eq(value, NVML_PCIE_LINK_MAX_SPEED_32000MBPS);
	set(VGPU_SENSOR_PCIE_GENERATION, 7);
	set(VGPU_SENSOR_PCIE_GENERATION_MAX, 0);
	check_eq(nvmlDeviceGetPcieSpeed(device, &value), NVML_ERROR_NOT_SUPPORTED);
	check_eq(nvmlDeviceGetPcieLinkMaxSpeed(device, &value), NVML_ERROR_NOT_SUPPORTED);
	check_eq(nvmlDeviceGetPcieThroughput(device, NVML_PCIE_UTIL_COUNT, &value),
		NVML_ERROR_INVALID_ARGUMENT);
	end();
}

static void limit(uint64_t of_all, uint64_t used_by_all)
{
	page_double_begin();
	status->memory_limit = of_all;
	status->memory_used = used_by_all;
	page_double_end();
}

TEST(what_other_devices_use_of_the_limit_is_not_free)
{
	nvmlMemory_v2_t second = { .version = nvmlMemory_v2 };
	nvmlMemory_t memory;

	begin();
	limit(800u << 20, 700u << 20);
	check_eq(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
	check_eq(memory.total, 800u << 20);
	check_eq(memory.used, 300u << 20);
	check_eq(memory.free, 100u << 20);
	check_eq(nvmlDeviceGetMemoryInfo_v2(device, &second), NVML_SUCCESS);
	check_eq(second.reserved, 400u << 20);
	/* The limit was lowered below the use. */
	limit(800u << 20, 900u << 20);
	check_eq(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
	check_eq(memory.free, 0);
	end();
}

TEST(memory_is_the_share_of_the_machine)
{
	nvmlMemory_v2_t second = { .version = nvmlMemory_v2, .reserved = 5 };
	nvmlBAR1Memory_t bar;
	nvmlMemory_t memory;

	begin();
	check_eq(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
	check_eq(memory.total, 800u << 20);
	check_eq(memory.used, 300u << 20);
	check_eq(memory.free, 500u << 20);
	check_eq(nvmlDeviceGetMemoryInfo_v2(device, &second), NVML_SUCCESS);
	check_eq(second.total, 800u << 20);
	check_eq(second.used, 300u << 20);
	check_eq(second.reserved, 0);
	second.version = 0;
	check_eq(nvmlDeviceGetMemoryInfo_v2(device, &second),
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	check_eq(nvmlDeviceGetBAR1MemoryInfo(device, &bar), NVML_ERROR_NOT_SUPPORTED);
	end();
}

TEST(errors_of_memory_are_those_since_the_driver_was_loaded)
{
	nvmlEnableState_t current, pending;
	unsigned long long n;

	begin();
	check_eq(nvmlDeviceGetEccMode(device, &current, &pending),
		NVML_ERROR_NOT_SUPPORTED);
	set(VGPU_SENSOR_ECC_MODE, 1);
	set(VGPU_SENSOR_ECC_CORRECTED, 3);
	set(VGPU_SENSOR_ECC_UNCORRECTED, 1ll << 40);
	check_eq(nvmlDeviceGetEccMode(device, &current, &pending), NVML_SUCCESS);
	check_eq(current, NVML_FEATURE_ENABLED);
	check_eq(pending, NVML_FEATURE_ENABLED);
	check_eq(nvmlDeviceGetTotalEccErrors(
			 device, NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC, &n),
		NVML_SUCCESS);
	check_eq(n, 3);
	check_eq(nvmlDeviceGetTotalEccErrors(device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
			 NVML_VOLATILE_ECC, &n),
		NVML_SUCCESS);
	check_eq(n, 1ll << 40);
	check_eq(nvmlDeviceGetTotalEccErrors(device, NVML_MEMORY_ERROR_TYPE_CORRECTED,
			 NVML_AGGREGATE_ECC, &n),
		NVML_ERROR_NOT_SUPPORTED);
	set(VGPU_SENSOR_ECC_CORRECTED_EVER, 44);
	check_eq(nvmlDeviceGetTotalEccErrors(device, NVML_MEMORY_ERROR_TYPE_CORRECTED,
			 NVML_AGGREGATE_ECC, &n),
		NVML_SUCCESS);
	check_eq(n, 44);
	check_eq(nvmlDeviceGetTotalEccErrors(
			 device, NVML_MEMORY_ERROR_TYPE_COUNT, NVML_VOLATILE_ECC, &n),
		NVML_ERROR_INVALID_ARGUMENT);
	end();
}

TEST(repairs_of_memory_are_counted)
{
	unsigned int corrected, uncorrected, is_pending, has_failed;
	nvmlFieldValue_t values[] = {
		{ .fieldId = NVML_FI_DEV_REMAPPED_PENDING },
		{ .fieldId = NVML_FI_DEV_REMAPPED_FAILURE },
		{ .fieldId = NVML_FI_DEV_RETIRED_DBE },
	};
	nvmlEnableState_t pending;

	begin();
	check_eq(nvmlDeviceGetRetiredPagesPendingStatus(device, &pending),
		NVML_ERROR_NOT_SUPPORTED);
	set(VGPU_SENSOR_RETIRED_PENDING, 1);
	check_eq(nvmlDeviceGetRetiredPagesPendingStatus(device, &pending), NVML_SUCCESS);
	check_eq(pending, NVML_FEATURE_ENABLED);
	set(VGPU_SENSOR_REMAPPED_CORRECTED, 3);
	set(VGPU_SENSOR_REMAPPED_UNCORRECTED, 4);
	check_eq(nvmlDeviceGetRemappedRows(
			 device, &corrected, &uncorrected, &is_pending, &has_failed),
		NVML_ERROR_NOT_SUPPORTED);
	set(VGPU_SENSOR_REMAPPED_STATE, 2);
	check_eq(nvmlDeviceGetRemappedRows(
			 device, &corrected, &uncorrected, &is_pending, &has_failed),
		NVML_SUCCESS);
	check_eq(corrected, 3);
	check_eq(uncorrected, 4);
	check_eq(is_pending, 0);
	check_eq(has_failed, 1);
	check_eq(nvmlDeviceGetFieldValues(device, 3, values), NVML_SUCCESS);
	check_eq(values[0].value.uiVal, 0);
	check_eq(values[1].value.uiVal, 1);
	check_eq(values[2].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
	end();
}

TEST(each_value_by_number_has_its_own_code)
{
	nvmlFieldValue_t values[] = {
		{ .fieldId = NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION },
		{ .fieldId = NVML_FI_DEV_NVLINK_LINK_COUNT },
		{ .fieldId = 0 },
		{ .fieldId = NVML_FI_MAX },
		{ .fieldId = NVML_FI_DEV_POWER_INSTANT },
	};

	begin();
	set(VGPU_SENSOR_ENERGY, 1ll << 33);
	check_eq(nvmlDeviceGetFieldValues(device, 5, values), NVML_SUCCESS);
	check_eq(values[0].nvmlReturn, NVML_SUCCESS);
	check_eq(values[0].valueType, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
	check_eq(values[0].value.ullVal, 1ll << 33);
	check_eq(values[0].timestamp, 1000);
	check_eq(values[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
	check_eq(values[2].nvmlReturn, NVML_ERROR_INVALID_ARGUMENT);
	check_eq(values[3].nvmlReturn, NVML_ERROR_INVALID_ARGUMENT);
	check_eq(values[4].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
	check_eq(
		nvmlDeviceGetFieldValues(device, 0, values), NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlDeviceGetFieldValues(device, -1, values),
		NVML_ERROR_INVALID_ARGUMENT);
	end();
}

TEST(the_system_is_described)
{
	char text[NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE];
	unsigned int n = 99;
	int version = 0;
	nvmlExcludedDeviceInfo_t excluded;
	nvmlUnit_t unit;

	begin();
	check_eq(nvmlSystemGetNVMLVersion(text, sizeof(text)), NVML_SUCCESS);
	check_str(text, "13.580.12");
	check_eq(nvmlSystemGetDriverVersion(text, 6), NVML_ERROR_INSUFFICIENT_SIZE);
	check_eq(nvmlSystemGetDriverVersion(text, 7), NVML_SUCCESS);
	check_eq(nvmlSystemGetCudaDriverVersion(&version), NVML_SUCCESS);
	check_eq(version, 13000);
	check_eq(nvmlSystemGetProcessName(1u << 30, text, sizeof(text)),
		NVML_ERROR_NOT_FOUND);
	check_eq(nvmlSystemGetProcessName(1, text, 0), NVML_ERROR_INVALID_ARGUMENT);
	check_eq(nvmlUnitGetCount(&n), NVML_SUCCESS);
	check_eq(n, 0);
	check_eq(nvmlUnitGetHandleByIndex(0, &unit), NVML_ERROR_INVALID_ARGUMENT);
	n = 99;
	check_eq(nvmlSystemGetHicVersion(&n, NULL), NVML_SUCCESS);
	check_eq(n, 0);
	n = 99;
	check_eq(nvmlGetExcludedDeviceCount(&n), NVML_SUCCESS);
	check_eq(n, 0);
	check_eq(nvmlGetExcludedDeviceInfoByIndex(0, &excluded),
		NVML_ERROR_INVALID_ARGUMENT);
	end();
}

TEST(codes_have_texts_of_their_own)
{
	for (int i = 0; i <= NVML_ERROR_RESET_TYPE_NOT_SUPPORTED; i++) {
		check(strcmp(nvmlErrorString((nvmlReturn_t)i), "Not a return code"));
		for (int j = 0; j < i; j++)
			check(strcmp(nvmlErrorString((nvmlReturn_t)i),
				nvmlErrorString((nvmlReturn_t)j)));
	}
	check_str(nvmlErrorString(NVML_ERROR_UNKNOWN), "Unknown error");
	check_str(nvmlErrorString((nvmlReturn_t)31), "Not a return code");
}
