/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Field: the values that can be asked for, by the names of nvidia-smi
 */

#include <string.h>

#include "smi/field.h"
#include "smi/get.h"

/* clang-format off */
#define ECC_COUNTER(_name, _label, _type, _counter, _location)                           \
	{ "ecc.errors." _name, NULL, NULL, SMI_ECC, _label, smi_get_ecc_errors,          \
		SMI_ERRORS(NVML_MEMORY_ERROR_TYPE_##_type, NVML_##_counter##_ECC,        \
			_location) }

#define ECC_COUNTERS(_name, _label, _type, _counter)                                     \
	ECC_COUNTER(_name ".device_memory", _label " Device Memory", _type, _counter,    \
		NVML_MEMORY_LOCATION_DEVICE_MEMORY),                                     \
	ECC_COUNTER(_name ".dram", NULL, _type, _counter, NVML_MEMORY_LOCATION_DRAM),    \
	ECC_COUNTER(_name ".register_file", _label " Register File", _type, _counter,    \
		NVML_MEMORY_LOCATION_REGISTER_FILE),                                     \
	ECC_COUNTER(_name ".l1_cache", _label " L1 Cache", _type, _counter,              \
		NVML_MEMORY_LOCATION_L1_CACHE),                                          \
	ECC_COUNTER(_name ".l2_cache", _label " L2 Cache", _type, _counter,              \
		NVML_MEMORY_LOCATION_L2_CACHE),                                          \
	ECC_COUNTER(_name ".texture_memory", _label " Texture Memory", _type, _counter,  \
		NVML_MEMORY_LOCATION_TEXTURE_MEMORY),                                    \
	ECC_COUNTER(_name ".cbu", _label " CBU", _type, _counter,                        \
		NVML_MEMORY_LOCATION_CBU),                                               \
	ECC_COUNTER(_name ".sram", _label " SRAM", _type, _counter,                      \
		NVML_MEMORY_LOCATION_SRAM),                                              \
	ECC_COUNTER(_name ".total", _label, _type, _counter, SMI_ERRORS_TOTAL)

#define REASONS(_name, _label, _get, _argument)                                          \
	{ "clocks_event_reasons." _name, "clocks_throttle_reasons." _name, NULL,         \
		SMI_PERFORMANCE, _label, _get, _argument }
#define REASON(_name, _label, _bit) REASONS(_name, _label, smi_get_reason, (int)(_bit))

const struct smi_field smi_fields[] = {
	{ "timestamp", NULL, NULL, SMI_GENERAL, NULL, smi_get_timestamp },
	{ "driver_version", NULL, NULL, SMI_GENERAL, NULL, smi_get_driver },
	{ "count", NULL, NULL, SMI_GENERAL, NULL, smi_get_count },
	{ "index", NULL, NULL, SMI_GENERAL, NULL, SMI_NUMBER(nvmlDeviceGetIndex) },
	{ "name", "gpu_name", NULL, SMI_GENERAL, "Name", SMI_TEXT(nvmlDeviceGetName) },
	{ "uuid", "gpu_uuid", NULL, SMI_GENERAL, "UUID", SMI_TEXT(nvmlDeviceGetUUID) },
	{ "serial", "gpu_serial", NULL, SMI_GENERAL, "Serial Number",
		SMI_TEXT(nvmlDeviceGetSerial) },
	{ "minor_number", NULL, NULL, SMI_GENERAL, "Minor Number",
		SMI_NUMBER(nvmlDeviceGetMinorNumber) },
	{ "vbios_version", NULL, NULL, SMI_GENERAL, "VBIOS Version",
		SMI_TEXT(nvmlDeviceGetVbiosVersion) },
	{ "inforom.img", "inforom.image", NULL, SMI_GENERAL, "Inforom Image",
		smi_get_inforom, -1 },
	{ "inforom.oem", NULL, NULL, SMI_GENERAL, "Inforom OEM Object",
		smi_get_inforom, NVML_INFOROM_OEM },
	{ "inforom.ecc", NULL, NULL, SMI_GENERAL, "Inforom ECC Object",
		smi_get_inforom, NVML_INFOROM_ECC },
	{ "inforom.pwr", "inforom.power", NULL, SMI_GENERAL, "Inforom Power Object",
		smi_get_inforom, NVML_INFOROM_POWER },
	{ "pci.bus_id", "gpu_bus_id", NULL, SMI_GENERAL, "Bus Id",
		smi_get_pci, SMI_PCI_ID },
	{ "pci.domain", NULL, NULL, SMI_GENERAL, NULL, smi_get_pci, SMI_PCI_DOMAIN },
	{ "pci.bus", NULL, NULL, SMI_GENERAL, NULL, smi_get_pci, SMI_PCI_BUS },
	{ "pci.device", NULL, NULL, SMI_GENERAL, NULL, smi_get_pci, SMI_PCI_DEVICE },
	{ "pci.device_id", NULL, NULL, SMI_GENERAL, "Device Id",
		smi_get_pci, SMI_PCI_KIND },
	{ "pci.sub_device_id", NULL, NULL, SMI_GENERAL, "Sub System Id",
		smi_get_pci, SMI_PCI_BOARD },
	{ "persistence_mode", NULL, NULL, SMI_GENERAL, "Persistence Mode",
		SMI_STATE(nvmlDeviceGetPersistenceMode) },
	{ "display_mode", NULL, NULL, SMI_GENERAL, "Display Mode",
		SMI_STATE(nvmlDeviceGetDisplayMode) },
	{ "display_active", NULL, NULL, SMI_GENERAL, "Display Active",
		SMI_STATE(nvmlDeviceGetDisplayActive) },
	{ "driver_model.current", NULL, NULL, SMI_GENERAL, NULL, smi_get_nothing },
	{ "driver_model.pending", NULL, NULL, SMI_GENERAL, NULL, smi_get_nothing },
	{ "gom.current", "gpu_operation_mode.current", NULL, SMI_GENERAL,
		"GPU Operation Mode", smi_get_operation_mode, 0 },
	{ "gom.pending", "gpu_operation_mode.pending", NULL, SMI_GENERAL, NULL,
		smi_get_operation_mode, 1 },
	{ "gsp.mode.current", NULL, NULL, SMI_GENERAL, "GSP Firmware",
		smi_get_gsp_mode, 0 },
	{ "gsp.mode.default", NULL, NULL, SMI_GENERAL, NULL, smi_get_gsp_mode, 1 },
	{ "mig.mode.current", NULL, NULL, SMI_GENERAL, "MIG Mode", smi_get_mig, 0 },
	{ "mig.mode.pending", NULL, NULL, SMI_GENERAL, NULL, smi_get_mig, 1 },
	{ "pcie.link.gen.current", "pcie.link.gen.gpucurrent", NULL, SMI_GENERAL,
		"PCIe Generation", SMI_NUMBER(nvmlDeviceGetCurrPcieLinkGeneration) },
	{ "pcie.link.gen.max", NULL, NULL, SMI_GENERAL, "PCIe Generation Max",
		SMI_NUMBER(nvmlDeviceGetMaxPcieLinkGeneration) },
	{ "pcie.link.gen.gpumax", NULL, NULL, SMI_GENERAL, NULL,
		SMI_NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration) },
	{ "pcie.link.gen.hostmax", NULL, NULL, SMI_GENERAL, NULL, smi_get_nothing },
	{ "pcie.link.width.current", NULL, NULL, SMI_GENERAL, "PCIe Width",
		SMI_NUMBER(nvmlDeviceGetCurrPcieLinkWidth) },
	{ "pcie.link.width.max", NULL, NULL, SMI_GENERAL, "PCIe Width Max",
		SMI_NUMBER(nvmlDeviceGetMaxPcieLinkWidth) },
	{ "accounting.mode", NULL, NULL, SMI_ACCOUNTING, "Mode",
		SMI_STATE(nvmlDeviceGetAccountingMode) },
	{ "accounting.buffer_size", NULL, NULL, SMI_ACCOUNTING, "Buffer Size",
		SMI_NUMBER(nvmlDeviceGetAccountingBufferSize) },
	{ "memory.total", NULL, "MiB", SMI_MEMORY, "Total",
		smi_get_memory, SMI_MEMORY_TOTAL },
	{ "memory.reserved", NULL, "MiB", SMI_MEMORY, "Reserved",
		smi_get_memory, SMI_MEMORY_RESERVED },
	{ "memory.used", NULL, "MiB", SMI_MEMORY, "Used",
		smi_get_memory, SMI_MEMORY_USED },
	{ "memory.free", NULL, "MiB", SMI_MEMORY, "Free",
		smi_get_memory, SMI_MEMORY_FREE },
	{ "utilization.gpu", NULL, "%", SMI_UTILIZATION, "GPU", smi_get_utilization, 0 },
	{ "utilization.memory", NULL, "%", SMI_UTILIZATION, "Memory",
		smi_get_utilization, 1 },
	{ "utilization.encoder", NULL, "%", SMI_UTILIZATION, "Encoder",
		SMI_ENGINE(nvmlDeviceGetEncoderUtilization) },
	{ "utilization.decoder", NULL, "%", SMI_UTILIZATION, "Decoder",
		SMI_ENGINE(nvmlDeviceGetDecoderUtilization) },
	{ "utilization.jpeg", NULL, "%", SMI_UTILIZATION, "JPEG",
		SMI_ENGINE(nvmlDeviceGetJpgUtilization) },
	{ "utilization.ofa", NULL, "%", SMI_UTILIZATION, "OFA",
		SMI_ENGINE(nvmlDeviceGetOfaUtilization) },
	{ "encoder.stats.sessionCount", NULL, NULL, SMI_ENCODER_STATS, "Sessions",
		smi_get_encoder, SMI_SESSIONS },
	{ "encoder.stats.averageFps", NULL, NULL, SMI_ENCODER_STATS, "Average FPS",
		smi_get_encoder, SMI_FRAMES },
	{ "encoder.stats.averageLatency", NULL, NULL, SMI_ENCODER_STATS,
		"Average Latency", smi_get_encoder, SMI_LATENCY },
	{ "ecc.mode.current", NULL, NULL, SMI_ECC, "Mode", smi_get_ecc_mode, 0 },
	{ "ecc.mode.pending", NULL, NULL, SMI_ECC, "Mode Pending", smi_get_ecc_mode, 1 },
	ECC_COUNTERS("corrected.volatile", "Corrected", CORRECTED, VOLATILE),
	ECC_COUNTERS("uncorrected.volatile", "Uncorrected", UNCORRECTED, VOLATILE),
	ECC_COUNTERS("corrected.aggregate", "Corrected Ever", CORRECTED, AGGREGATE),
	ECC_COUNTERS("uncorrected.aggregate", "Uncorrected Ever", UNCORRECTED,
		AGGREGATE),
	{ "retired_pages.single_bit_ecc.count", "retired_pages.sbe", NULL,
		SMI_PAGE_RETIREMENT, "Single Bit ECC",
		smi_get_value, NVML_FI_DEV_RETIRED_SBE },
	{ "retired_pages.double_bit.count", "retired_pages.dbe", NULL,
		SMI_PAGE_RETIREMENT, "Double Bit ECC",
		smi_get_value, NVML_FI_DEV_RETIRED_DBE },
	{ "retired_pages.pending", NULL, NULL, SMI_PAGE_RETIREMENT, "Pending",
		smi_get_value_yes_no, NVML_FI_DEV_RETIRED_PENDING },
	{ "remapped_rows.correctable", NULL, NULL, SMI_ROW_REMAPPER, "Correctable",
		smi_get_value, NVML_FI_DEV_REMAPPED_COR },
	{ "remapped_rows.uncorrectable", NULL, NULL, SMI_ROW_REMAPPER, "Uncorrectable",
		smi_get_value, NVML_FI_DEV_REMAPPED_UNC },
	{ "remapped_rows.pending", NULL, NULL, SMI_ROW_REMAPPER, "Pending",
		smi_get_value_yes_no, NVML_FI_DEV_REMAPPED_PENDING },
	{ "remapped_rows.failure", NULL, NULL, SMI_ROW_REMAPPER, "Failure",
		smi_get_value_yes_no, NVML_FI_DEV_REMAPPED_FAILURE },
	{ "temperature.gpu", NULL, NULL, SMI_TEMPERATURE, "GPU", smi_get_temperature },
	{ "temperature.gpu.tlimit", NULL, NULL, SMI_TEMPERATURE, "GPU To Limit",
		smi_get_margin },
	{ "temperature.memory", NULL, NULL, SMI_TEMPERATURE, "Memory",
		smi_get_value, NVML_FI_DEV_MEMORY_TEMP },
	{ "temperature.slowdown", NULL, NULL, SMI_TEMPERATURE, "Slowdown",
		smi_get_threshold, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN },
	{ "temperature.shutdown", NULL, NULL, SMI_TEMPERATURE, "Shutdown",
		smi_get_threshold, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN },
	{ "fan.speed", NULL, "%", SMI_TEMPERATURE, "Fan",
		SMI_NUMBER(nvmlDeviceGetFanSpeed) },
	{ "power.management", NULL, NULL, SMI_POWER, "Management",
		SMI_STATE(nvmlDeviceGetPowerManagementMode) },
	{ "power.draw", NULL, "W", SMI_POWER, "Draw",
		SMI_WATTS(nvmlDeviceGetPowerUsage) },
	{ "power.draw.average", NULL, "W", SMI_POWER, "Draw Average",
		smi_get_value_watts, NVML_FI_DEV_POWER_AVERAGE },
	{ "power.draw.instant", NULL, "W", SMI_POWER, "Draw Instant",
		smi_get_value_watts, NVML_FI_DEV_POWER_INSTANT },
	{ "power.limit", NULL, "W", SMI_POWER, "Limit",
		SMI_WATTS(nvmlDeviceGetPowerManagementLimit) },
	{ "enforced.power.limit", NULL, "W", SMI_POWER, "Limit Enforced",
		SMI_WATTS(nvmlDeviceGetEnforcedPowerLimit) },
	{ "power.default_limit", NULL, "W", SMI_POWER, "Limit Default",
		SMI_WATTS(nvmlDeviceGetPowerManagementDefaultLimit) },
	{ "power.min_limit", NULL, "W", SMI_POWER, "Limit Min", smi_get_power_bound, 0 },
	{ "power.max_limit", NULL, "W", SMI_POWER, "Limit Max", smi_get_power_bound, 1 },
	{ "energy.total", NULL, "J", SMI_POWER, "Energy", smi_get_energy },
	{ "clocks.current.graphics", "clocks.gr", "MHz", SMI_CLOCK, "Graphics",
		smi_get_clock, NVML_CLOCK_GRAPHICS },
	{ "clocks.current.sm", "clocks.sm", "MHz", SMI_CLOCK, "SM",
		smi_get_clock, NVML_CLOCK_SM },
	{ "clocks.current.memory", "clocks.mem", "MHz", SMI_CLOCK, "Memory",
		smi_get_clock, NVML_CLOCK_MEM },
	{ "clocks.current.video", "clocks.video", "MHz", SMI_CLOCK, "Video",
		smi_get_clock, NVML_CLOCK_VIDEO },
	{ "clocks.applications.graphics", "clocks.applications.gr", "MHz", SMI_CLOCK,
		"Graphics Applications", smi_get_application_clock, NVML_CLOCK_GRAPHICS },
	{ "clocks.applications.memory", "clocks.applications.mem", "MHz", SMI_CLOCK,
		"Memory Applications", smi_get_application_clock, NVML_CLOCK_MEM },
	{ "clocks.default_applications.graphics", "clocks.default_applications.gr",
		"MHz", SMI_CLOCK, "Graphics Default",
		smi_get_default_clock, NVML_CLOCK_GRAPHICS },
	{ "clocks.default_applications.memory", "clocks.default_applications.mem",
		"MHz", SMI_CLOCK, "Memory Default",
		smi_get_default_clock, NVML_CLOCK_MEM },
	{ "clocks.max.graphics", "clocks.max.gr", "MHz", SMI_CLOCK, "Graphics Max",
		smi_get_max_clock, NVML_CLOCK_GRAPHICS },
	{ "clocks.max.sm", NULL, "MHz", SMI_CLOCK, "SM Max",
		smi_get_max_clock, NVML_CLOCK_SM },
	{ "clocks.max.memory", "clocks.max.mem", "MHz", SMI_CLOCK, "Memory Max",
		smi_get_max_clock, NVML_CLOCK_MEM },
	{ "compute_mode", NULL, NULL, SMI_COMPUTE, "Compute Mode", smi_get_compute_mode },
	{ "compute_cap", NULL, NULL, SMI_COMPUTE, "Compute Capability",
		smi_get_capability },
	{ "pstate", NULL, NULL, SMI_PERFORMANCE, "State", smi_get_pstate },
	REASONS("supported", "Reasons Supported", smi_get_reasons, 1),
	REASONS("active", "Reasons Active", smi_get_reasons, 0),
	REASON("gpu_idle", "Reason Idle", nvmlClocksEventReasonGpuIdle),
	REASON("applications_clocks_setting", "Reason Applications Clocks",
		nvmlClocksEventReasonApplicationsClocksSetting),
	REASON("sw_power_cap", "Reason SW Power Cap", nvmlClocksEventReasonSwPowerCap),
	REASON("hw_slowdown", "Reason HW Slowdown", nvmlClocksThrottleReasonHwSlowdown),
	REASON("hw_thermal_slowdown", "Reason HW Thermal Slowdown",
		nvmlClocksThrottleReasonHwThermalSlowdown),
	REASON("hw_power_brake_slowdown", "Reason HW Power Brake Slowdown",
		nvmlClocksThrottleReasonHwPowerBrakeSlowdown),
	REASON("sync_boost", "Reason Sync Boost", nvmlClocksEventReasonSyncBoost),
	REASON("sw_thermal_slowdown", "Reason SW Thermal Slowdown",
		nvmlClocksEventReasonSwThermalSlowdown),
};
/* clang-format on */

const size_t smi_n_fields = sizeof(smi_fields) / sizeof(smi_fields[0]);

const struct smi_field *smi_field_find(const char *name)
{
	for (size_t i = 0; i < smi_n_fields; i++)
		if (!strcmp(smi_fields[i].name, name) ||
			(smi_fields[i].other_name &&
				!strcmp(smi_fields[i].other_name, name)))
			return &smi_fields[i];
	return NULL;
}

void smi_field_get(
	const struct smi_field *field, nvmlDevice_t device, struct smi_value *value)
{
	field->get(device, value, field->argument);
}

void smi_field_text(nvmlDevice_t device, const char *name, char text[SMI_VALUE_TEXT])
{
	const struct smi_field *field = smi_field_find(name);
	struct smi_value value;

	smi_field_get(field, device, &value);
	smi_value_print(&value, field->unit, text);
}
