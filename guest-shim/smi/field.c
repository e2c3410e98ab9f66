/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Field: how each value is asked for
 */

#include <string.h>
#include <time.h>

#include "smi/field.h"
#include "smi/library.h"

#define MIB (1024.0 * 1024.0)

typedef nvmlReturn_t (*get_number_fn)(nvmlDevice_t device, unsigned int *value);
typedef nvmlReturn_t (*get_text_fn)(nvmlDevice_t device, char *text, unsigned int length);
typedef nvmlReturn_t (*get_state_fn)(nvmlDevice_t device, nvmlEnableState_t *state);

static void set_number_of(
	struct smi_value *value, nvmlDevice_t device, get_number_fn get, double scale)
{
	unsigned int number = 0;
	nvmlReturn_t result = get ? get(device, &number) : NVML_ERROR_FUNCTION_NOT_FOUND;

	smi_value_set_number(value, result, number / scale);
}

static void set_text_of(struct smi_value *value, nvmlDevice_t device, get_text_fn get)
{
	char text[sizeof(value->text)] = "";
	nvmlReturn_t result =
		get ? get(device, text, sizeof(text)) : NVML_ERROR_FUNCTION_NOT_FOUND;

	smi_value_set_text(value, result, "%s", text);
}

static void set_state(struct smi_value *value, nvmlReturn_t result, unsigned int state)
{
	smi_value_set_text(value, result, "%s", state ? "Enabled" : "Disabled");
}

static void set_state_of(struct smi_value *value, nvmlDevice_t device, get_state_fn get)
{
	nvmlEnableState_t state = NVML_FEATURE_DISABLED;
	nvmlReturn_t result = get ? get(device, &state) : NVML_ERROR_FUNCTION_NOT_FOUND;

	set_state(value, result, state);
}

static void get_timestamp(nvmlDevice_t device, struct smi_value *value, int argument)
{
	struct timespec now;
	char text[32];
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(text, sizeof(text), "%Y/%m/%d %H:%M:%S", &tm);
	smi_value_set_text(value, NVML_SUCCESS, "%s.%03ld", text, now.tv_nsec / 1000000);
}

static void get_driver(nvmlDevice_t device, struct smi_value *value, int argument)
{
	char text[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = "";
	nvmlReturn_t result = SMI_CALL(nvmlSystemGetDriverVersion, text, sizeof(text));

	smi_value_set_text(value, result, "%s", text);
}

static void get_count(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int n = 0;
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetCount_v2, &n);

	smi_value_set_number(value, result, n);
}

static void get_index(nvmlDevice_t device, struct smi_value *value, int argument)
{
	set_number_of(value, device, smi_library.nvmlDeviceGetIndex, 1);
}

static void get_minor(nvmlDevice_t device, struct smi_value *value, int argument)
{
	set_number_of(value, device, smi_library.nvmlDeviceGetMinorNumber, 1);
}

static void get_name(nvmlDevice_t device, struct smi_value *value, int argument)
{
	set_text_of(value, device, smi_library.nvmlDeviceGetName);
}

static void get_uuid(nvmlDevice_t device, struct smi_value *value, int argument)
{
	set_text_of(value, device, smi_library.nvmlDeviceGetUUID);
}

static void get_serial(nvmlDevice_t device, struct smi_value *value, int argument)
{
	set_text_of(value, device, smi_library.nvmlDeviceGetSerial);
}

static void get_vbios(nvmlDevice_t device, struct smi_value *value, int argument)
{
	set_text_of(value, device, smi_library.nvmlDeviceGetVbiosVersion);
}

enum { PCI_ID, PCI_DOMAIN, PCI_BUS, PCI_DEVICE };

static void get_pci(nvmlDevice_t device, struct smi_value *value, int argument)
{
	nvmlPciInfo_t pci = {};
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetPciInfo_v3, device, &pci);

	if (argument == PCI_DOMAIN)
		smi_value_set_text(value, result, "0x%04X", pci.domain);
	else if (argument == PCI_BUS)
		smi_value_set_text(value, result, "0x%02X", pci.bus);
	else if (argument == PCI_DEVICE)
		smi_value_set_text(value, result, "0x%02X", pci.device);
	else
		smi_value_set_text(value, result, "%.32s", pci.busId);
}

static void get_persistence(nvmlDevice_t device, struct smi_value *value, int argument)
{
	set_state_of(value, device, smi_library.nvmlDeviceGetPersistenceMode);
}

static void get_display(nvmlDevice_t device, struct smi_value *value, int argument)
{
	set_state_of(value, device,
		argument ? smi_library.nvmlDeviceGetDisplayActive
			 : smi_library.nvmlDeviceGetDisplayMode);
}

static void get_accounting(nvmlDevice_t device, struct smi_value *value, int argument)
{
	set_state_of(value, device, smi_library.nvmlDeviceGetAccountingMode);
}

static void get_mig(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int modes[2] = {};
	nvmlReturn_t result =
		SMI_CALL(nvmlDeviceGetMigMode, device, &modes[0], &modes[1]);

	set_state(value, result, modes[argument]);
}

static void get_ecc_mode(nvmlDevice_t device, struct smi_value *value, int argument)
{
	nvmlEnableState_t modes[2] = {};
	nvmlReturn_t result =
		SMI_CALL(nvmlDeviceGetEccMode, device, &modes[0], &modes[1]);

	set_state(value, result, modes[argument]);
}

static void get_ecc_errors(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned long long n = 0;
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetTotalEccErrors, device,
		(nvmlMemoryErrorType_t)argument, NVML_VOLATILE_ECC, &n);

	smi_value_set_number(value, result, (double)n);
}

static void get_capability(nvmlDevice_t device, struct smi_value *value, int argument)
{
	int major = 0, minor = 0;
	nvmlReturn_t result =
		SMI_CALL(nvmlDeviceGetCudaComputeCapability, device, &major, &minor);

	smi_value_set_text(value, result, "%d.%d", major, minor);
}

static void get_compute_mode(nvmlDevice_t device, struct smi_value *value, int argument)
{
	static const char *const names[] = {
		"Default",
		"Exclusive_Thread",
		"Prohibited",
		"Exclusive_Process",
	};
	nvmlComputeMode_t mode = NVML_COMPUTEMODE_DEFAULT;
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetComputeMode, device, &mode);

	smi_value_set_text(value, result, "%s",
		(unsigned int)mode < NVML_COMPUTEMODE_COUNT ? names[mode] : "Unknown");
}

enum { MEMORY_TOTAL, MEMORY_USED, MEMORY_FREE };

static void get_memory(nvmlDevice_t device, struct smi_value *value, int argument)
{
	nvmlMemory_t memory = {};
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetMemoryInfo, device, &memory);
	const unsigned long long bytes[] = { memory.total, memory.used, memory.free };

	smi_value_set_number(value, result, (double)bytes[argument] / MIB);
}

static void get_utilization(nvmlDevice_t device, struct smi_value *value, int argument)
{
	nvmlUtilization_t rates = {};
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetUtilizationRates, device, &rates);

	smi_value_set_number(value, result, argument ? rates.memory : rates.gpu);
}

static void get_engine(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int percent = 0, period;
	nvmlReturn_t result = argument ? SMI_CALL(nvmlDeviceGetDecoderUtilization, device,
						 &percent, &period)
				       : SMI_CALL(nvmlDeviceGetEncoderUtilization, device,
						 &percent, &period);

	smi_value_set_number(value, result, percent);
}

static void get_temperature(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int degrees = 0;
	nvmlReturn_t result = SMI_CALL(
		nvmlDeviceGetTemperature, device, NVML_TEMPERATURE_GPU, &degrees);

	smi_value_set_number(value, result, degrees);
}

static void get_threshold(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int degrees = 0;
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetTemperatureThreshold, device,
		(nvmlTemperatureThresholds_t)argument, &degrees);

	smi_value_set_number(value, result, degrees);
}

static void get_fan(nvmlDevice_t device, struct smi_value *value, int argument)
{
	set_number_of(value, device, smi_library.nvmlDeviceGetFanSpeed, 1);
}

static void get_pstate(nvmlDevice_t device, struct smi_value *value, int argument)
{
	nvmlPstates_t state = NVML_PSTATE_UNKNOWN;
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetPerformanceState, device, &state);

	if (result == NVML_SUCCESS && state == NVML_PSTATE_UNKNOWN)
		result = NVML_ERROR_NOT_SUPPORTED;
	smi_value_set_text(value, result, "P%d", (int)state);
}

static void get_reasons(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned long long reasons = 0;
	nvmlReturn_t result =
		SMI_CALL(nvmlDeviceGetCurrentClocksThrottleReasons, device, &reasons);

	smi_value_set_text(value, result, "0x%016llX", reasons);
}

enum { POWER_DRAW, POWER_LIMIT, POWER_ENFORCED, POWER_DEFAULT };

static void get_power(nvmlDevice_t device, struct smi_value *value, int argument)
{
	const get_number_fn functions[] = {
		smi_library.nvmlDeviceGetPowerUsage,
		smi_library.nvmlDeviceGetPowerManagementLimit,
		smi_library.nvmlDeviceGetEnforcedPowerLimit,
		smi_library.nvmlDeviceGetPowerManagementDefaultLimit,
	};

	set_number_of(value, device, functions[argument], 1000);
	value->n_decimals = 2;
}

static void get_power_bound(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int bounds[2] = {};
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetPowerManagementLimitConstraints,
		device, &bounds[0], &bounds[1]);

	smi_value_set_number(value, result, bounds[argument] / 1000.0);
	value->n_decimals = 2;
}

static void get_energy(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned long long energy = 0;
	nvmlReturn_t result =
		SMI_CALL(nvmlDeviceGetTotalEnergyConsumption, device, &energy);

	smi_value_set_number(value, result, (double)energy / 1000);
	value->n_decimals = 3;
}

static void get_clock(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int mhz = 0;
	nvmlReturn_t result =
		SMI_CALL(nvmlDeviceGetClockInfo, device, (nvmlClockType_t)argument, &mhz);

	smi_value_set_number(value, result, mhz);
}

static void get_max_clock(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int mhz = 0;
	nvmlReturn_t result = SMI_CALL(
		nvmlDeviceGetMaxClockInfo, device, (nvmlClockType_t)argument, &mhz);

	smi_value_set_number(value, result, mhz);
}

enum { LINK_GENERATION, LINK_GENERATION_MAX, LINK_WIDTH, LINK_WIDTH_MAX };

static void get_link(nvmlDevice_t device, struct smi_value *value, int argument)
{
	const get_number_fn functions[] = {
		smi_library.nvmlDeviceGetCurrPcieLinkGeneration,
		smi_library.nvmlDeviceGetMaxPcieLinkGeneration,
		smi_library.nvmlDeviceGetCurrPcieLinkWidth,
		smi_library.nvmlDeviceGetMaxPcieLinkWidth,
	};

	set_number_of(value, device, functions[argument], 1);
}

/* clang-format off */
const struct smi_field smi_fields[] = {
	{ "timestamp", NULL, NULL, SMI_GENERAL, NULL, get_timestamp },
	{ "driver_version", NULL, NULL, SMI_GENERAL, NULL, get_driver },
	{ "count", NULL, NULL, SMI_GENERAL, NULL, get_count },
	{ "index", NULL, NULL, SMI_GENERAL, NULL, get_index },
	{ "name", "gpu_name", NULL, SMI_GENERAL, "Name", get_name },
	{ "uuid", "gpu_uuid", NULL, SMI_GENERAL, "UUID", get_uuid },
	{ "serial", "gpu_serial", NULL, SMI_GENERAL, "Serial Number", get_serial },
	{ "minor_number", NULL, NULL, SMI_GENERAL, "Minor Number", get_minor },
	{ "vbios_version", NULL, NULL, SMI_GENERAL, "VBIOS Version", get_vbios },
	{ "pci.bus_id", "gpu_bus_id", NULL, SMI_GENERAL, "Bus Id", get_pci, PCI_ID },
	{ "pci.domain", NULL, NULL, SMI_GENERAL, NULL, get_pci, PCI_DOMAIN },
	{ "pci.bus", NULL, NULL, SMI_GENERAL, NULL, get_pci, PCI_BUS },
	{ "pci.device", NULL, NULL, SMI_GENERAL, NULL, get_pci, PCI_DEVICE },
	{ "persistence_mode", NULL, NULL, SMI_GENERAL, "Persistence Mode",
		get_persistence },
	{ "display_mode", NULL, NULL, SMI_GENERAL, "Display Mode", get_display, 0 },
	{ "display_active", NULL, NULL, SMI_GENERAL, "Display Active", get_display, 1 },
	{ "accounting.mode", NULL, NULL, SMI_GENERAL, "Accounting Mode", get_accounting },
	{ "mig.mode.current", NULL, NULL, SMI_GENERAL, "MIG Mode", get_mig, 0 },
	{ "mig.mode.pending", NULL, NULL, SMI_GENERAL, NULL, get_mig, 1 },
	{ "pcie.link.gen.current", "pcie.link.gen.gpucurrent", NULL, SMI_GENERAL,
		"PCIe Generation", get_link, LINK_GENERATION },
	{ "pcie.link.gen.max", "pcie.link.gen.gpumax", NULL, SMI_GENERAL,
		"PCIe Generation Max", get_link, LINK_GENERATION_MAX },
	{ "pcie.link.width.current", NULL, NULL, SMI_GENERAL, "PCIe Width", get_link,
		LINK_WIDTH },
	{ "pcie.link.width.max", NULL, NULL, SMI_GENERAL, "PCIe Width Max", get_link,
		LINK_WIDTH_MAX },
	{ "memory.total", NULL, "MiB", SMI_MEMORY, "Total", get_memory, MEMORY_TOTAL },
	{ "memory.used", NULL, "MiB", SMI_MEMORY, "Used", get_memory, MEMORY_USED },
	{ "memory.free", NULL, "MiB", SMI_MEMORY, "Free", get_memory, MEMORY_FREE },
	{ "utilization.gpu", NULL, "%", SMI_UTILIZATION, "GPU", get_utilization, 0 },
	{ "utilization.memory", NULL, "%", SMI_UTILIZATION, "Memory", get_utilization,
		1 },
	{ "utilization.encoder", NULL, "%", SMI_UTILIZATION, "Encoder", get_engine, 0 },
	{ "utilization.decoder", NULL, "%", SMI_UTILIZATION, "Decoder", get_engine, 1 },
	{ "ecc.mode.current", NULL, NULL, SMI_ECC, "Mode", get_ecc_mode, 0 },
	{ "ecc.mode.pending", NULL, NULL, SMI_ECC, "Mode Pending", get_ecc_mode, 1 },
	{ "ecc.errors.corrected.volatile.total", NULL, NULL, SMI_ECC, "Corrected",
		get_ecc_errors, NVML_MEMORY_ERROR_TYPE_CORRECTED },
	{ "ecc.errors.uncorrected.volatile.total", NULL, NULL, SMI_ECC, "Uncorrected",
		get_ecc_errors, NVML_MEMORY_ERROR_TYPE_UNCORRECTED },
	{ "temperature.gpu", NULL, NULL, SMI_TEMPERATURE, "GPU", get_temperature },
	{ "temperature.slowdown", NULL, NULL, SMI_TEMPERATURE, "Slowdown", get_threshold,
		NVML_TEMPERATURE_THRESHOLD_SLOWDOWN },
	{ "temperature.shutdown", NULL, NULL, SMI_TEMPERATURE, "Shutdown", get_threshold,
		NVML_TEMPERATURE_THRESHOLD_SHUTDOWN },
	{ "fan.speed", NULL, "%", SMI_TEMPERATURE, "Fan", get_fan },
	{ "power.draw", "power.draw.instant", "W", SMI_POWER, "Draw", get_power,
		POWER_DRAW },
	{ "power.limit", NULL, "W", SMI_POWER, "Limit", get_power, POWER_LIMIT },
	{ "enforced.power.limit", NULL, "W", SMI_POWER, "Limit Enforced", get_power,
		POWER_ENFORCED },
	{ "power.default_limit", NULL, "W", SMI_POWER, "Limit Default", get_power,
		POWER_DEFAULT },
	{ "power.min_limit", NULL, "W", SMI_POWER, "Limit Min", get_power_bound, 0 },
	{ "power.max_limit", NULL, "W", SMI_POWER, "Limit Max", get_power_bound, 1 },
	{ "energy.total", NULL, "J", SMI_POWER, "Energy", get_energy },
	{ "clocks.current.graphics", "clocks.gr", "MHz", SMI_CLOCK, "Graphics", get_clock,
		NVML_CLOCK_GRAPHICS },
	{ "clocks.current.sm", "clocks.sm", "MHz", SMI_CLOCK, "SM", get_clock,
		NVML_CLOCK_SM },
	{ "clocks.current.memory", "clocks.mem", "MHz", SMI_CLOCK, "Memory", get_clock,
		NVML_CLOCK_MEM },
	{ "clocks.current.video", "clocks.video", "MHz", SMI_CLOCK, "Video", get_clock,
		NVML_CLOCK_VIDEO },
	{ "clocks.max.graphics", "clocks.max.gr", "MHz", SMI_CLOCK, "Graphics Max",
		get_max_clock, NVML_CLOCK_GRAPHICS },
	{ "clocks.max.sm", NULL, "MHz", SMI_CLOCK, "SM Max", get_max_clock,
		NVML_CLOCK_SM },
	{ "clocks.max.memory", "clocks.max.mem", "MHz", SMI_CLOCK, "Memory Max",
		get_max_clock, NVML_CLOCK_MEM },
	{ "compute_mode", NULL, NULL, SMI_COMPUTE, "Compute Mode", get_compute_mode },
	{ "compute_cap", NULL, NULL, SMI_COMPUTE, "Compute Capability", get_capability },
	{ "pstate", NULL, NULL, SMI_PERFORMANCE, "State", get_pstate },
	{ "clocks_event_reasons.active", "clocks_throttle_reasons.active", NULL,
		SMI_PERFORMANCE, "Clocks Event Reasons", get_reasons },
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
