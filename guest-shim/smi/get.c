/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Get: what a device is, and how much of it is in use
 */

#include <string.h>
#include <time.h>

#include "smi/get.h"

#define MIB (1024.0 * 1024.0)

/*
 * Functions of one type
 */

/* The function that the argument stands for; NULL: the library lacks it. */
static void *function_at(int argument)
{
	void *function;

	memcpy(&function, (const char *)&smi_library + argument, sizeof(function));
	return function;
}

static void get_scaled(
	nvmlDevice_t device, struct smi_value *value, int argument, double scale)
{
	const smi_number_fn get = (smi_number_fn)function_at(argument);
	unsigned int number = 0;
	nvmlReturn_t result = get ? get(device, &number) : NVML_ERROR_FUNCTION_NOT_FOUND;

	smi_value_set_number(value, result, number / scale);
}

void smi_get_number(nvmlDevice_t device, struct smi_value *value, int argument)
{
	get_scaled(device, value, argument, 1);
}

void smi_get_watts(nvmlDevice_t device, struct smi_value *value, int argument)
{
	get_scaled(device, value, argument, 1000);
	value->n_decimals = 2;
}

void smi_get_text(nvmlDevice_t device, struct smi_value *value, int argument)
{
	const smi_text_fn get = (smi_text_fn)function_at(argument);
	char text[sizeof(value->text)] = "";
	nvmlReturn_t result =
		get ? get(device, text, sizeof(text)) : NVML_ERROR_FUNCTION_NOT_FOUND;

	smi_value_set_text(value, result, "%s", text);
}

static void set_state(struct smi_value *value, nvmlReturn_t result, unsigned int state)
{
	smi_value_set_text(value, result, "%s", state ? "Enabled" : "Disabled");
}

void smi_get_state(nvmlDevice_t device, struct smi_value *value, int argument)
{
	const smi_state_fn get = (smi_state_fn)function_at(argument);
	nvmlEnableState_t state = NVML_FEATURE_DISABLED;
	nvmlReturn_t result = get ? get(device, &state) : NVML_ERROR_FUNCTION_NOT_FOUND;

	set_state(value, result, state);
}

void smi_get_engine(nvmlDevice_t device, struct smi_value *value, int argument)
{
	const smi_engine_fn get = (smi_engine_fn)function_at(argument);
	unsigned int percent = 0, period;
	nvmlReturn_t result =
		get ? get(device, &percent, &period) : NVML_ERROR_FUNCTION_NOT_FOUND;

	smi_value_set_number(value, result, percent);
}

void smi_get_nothing(nvmlDevice_t device, struct smi_value *value, int argument)
{
	smi_value_set_text(value, NVML_ERROR_NOT_SUPPORTED, "%s", "");
}

/*
 * What it is
 */

void smi_get_timestamp(nvmlDevice_t device, struct smi_value *value, int argument)
{
	struct timespec now;
	char text[32];
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(text, sizeof(text), "%Y/%m/%d %H:%M:%S", &tm);
	smi_value_set_text(value, NVML_SUCCESS, "%s.%03ld", text, now.tv_nsec / 1000000);
}

void smi_get_driver(nvmlDevice_t device, struct smi_value *value, int argument)
{
	char text[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = "";
	nvmlReturn_t result = SMI_CALL(nvmlSystemGetDriverVersion, text, sizeof(text));

	smi_value_set_text(value, result, "%s", text);
}

void smi_get_count(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int n = 0;
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetCount_v2, &n);

	smi_value_set_number(value, result, n);
}

void smi_get_capability(nvmlDevice_t device, struct smi_value *value, int argument)
{
	int major = 0, minor = 0;
	nvmlReturn_t result =
		SMI_CALL(nvmlDeviceGetCudaComputeCapability, device, &major, &minor);

	smi_value_set_text(value, result, "%d.%d", major, minor);
}

void smi_get_compute_mode(nvmlDevice_t device, struct smi_value *value, int argument)
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

void smi_get_pci(nvmlDevice_t device, struct smi_value *value, int argument)
{
	nvmlPciInfo_t pci = {};
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetPciInfo_v3, device, &pci);
	const unsigned int kind =
		argument == SMI_PCI_BOARD ? pci.pciSubSystemId : pci.pciDeviceId;

	switch (argument) {
	case SMI_PCI_DOMAIN:
		smi_value_set_text(value, result, "0x%04X", pci.domain);
		break;
	case SMI_PCI_BUS:
		smi_value_set_text(value, result, "0x%02X", pci.bus);
		break;
	case SMI_PCI_DEVICE:
		smi_value_set_text(value, result, "0x%02X", pci.device);
		break;
	case SMI_PCI_KIND:
	case SMI_PCI_BOARD:
		/* A guest's library does not know it. */
		if (result == NVML_SUCCESS && !kind)
			result = NVML_ERROR_NOT_SUPPORTED;
		smi_value_set_text(value, result, "0x%08X", kind);
		break;
	default:
		smi_value_set_text(value, result, "%.32s", pci.busId);
	}
}

void smi_get_mig(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int modes[2] = {};
	nvmlReturn_t result =
		SMI_CALL(nvmlDeviceGetMigMode, device, &modes[0], &modes[1]);

	set_state(value, result, modes[argument]);
}

void smi_get_ecc_mode(nvmlDevice_t device, struct smi_value *value, int argument)
{
	nvmlEnableState_t modes[2] = {};
	nvmlReturn_t result =
		SMI_CALL(nvmlDeviceGetEccMode, device, &modes[0], &modes[1]);

	set_state(value, result, modes[argument]);
}

void smi_get_operation_mode(nvmlDevice_t device, struct smi_value *value, int argument)
{
	static const char *const names[] = { "All On", "Compute",
		"Low Double Precision" };
	nvmlGpuOperationMode_t modes[2] = {};
	nvmlReturn_t result =
		SMI_CALL(nvmlDeviceGetGpuOperationMode, device, &modes[0], &modes[1]);
	const unsigned int mode = modes[argument];

	smi_value_set_text(value, result, "%s", mode < 3 ? names[mode] : "Unknown");
}

void smi_get_gsp_mode(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int modes[2] = {};
	nvmlReturn_t result =
		SMI_CALL(nvmlDeviceGetGspFirmwareMode, device, &modes[0], &modes[1]);

	set_state(value, result, modes[argument]);
}

void smi_get_inforom(nvmlDevice_t device, struct smi_value *value, int argument)
{
	char text[NVML_DEVICE_INFOROM_VERSION_BUFFER_SIZE] = "";
	nvmlReturn_t result =
		argument < 0 ? SMI_CALL(nvmlDeviceGetInforomImageVersion, device, text,
				       sizeof(text))
			     : SMI_CALL(nvmlDeviceGetInforomVersion, device,
				       (nvmlInforomObject_t)argument, text, sizeof(text));

	smi_value_set_text(value, result, "%s", text);
}

/*
 * What is in use
 */

static void get_reserved(nvmlDevice_t device, struct smi_value *value)
{
	nvmlMemory_v2_t memory = { .version = nvmlMemory_v2 };
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetMemoryInfo_v2, device, &memory);

	smi_value_set_number(value, result, (double)memory.reserved / MIB);
}

void smi_get_memory(nvmlDevice_t device, struct smi_value *value, int argument)
{
	nvmlMemory_t memory = {};
	nvmlReturn_t result;

	if (argument == SMI_MEMORY_RESERVED) {
		get_reserved(device, value);
		return;
	}
	result = SMI_CALL(nvmlDeviceGetMemoryInfo, device, &memory);
	smi_value_set_number(value, result,
		(double)(argument == SMI_MEMORY_TOTAL  ? memory.total
			 : argument == SMI_MEMORY_USED ? memory.used
						       : memory.free) /
			MIB);
}

void smi_get_utilization(nvmlDevice_t device, struct smi_value *value, int argument)
{
	nvmlUtilization_t rates = {};
	nvmlReturn_t result = SMI_CALL(nvmlDeviceGetUtilizationRates, device, &rates);

	smi_value_set_number(value, result, argument ? rates.memory : rates.gpu);
}

void smi_get_encoder(nvmlDevice_t device, struct smi_value *value, int argument)
{
	unsigned int numbers[3] = {};
	nvmlReturn_t result = SMI_CALL(
		nvmlDeviceGetEncoderStats, device, &numbers[0], &numbers[1], &numbers[2]);

	smi_value_set_number(value, result, numbers[argument]);
}

void smi_get_ecc_errors(nvmlDevice_t device, struct smi_value *value, int argument)
{
	const nvmlMemoryErrorType_t type = (nvmlMemoryErrorType_t)(argument & 1);
	const nvmlEccCounterType_t counter = (nvmlEccCounterType_t)(argument >> 1 & 1);
	const int location = argument >> 2;
	unsigned long long n = 0;
	nvmlReturn_t result;

	if (location == SMI_ERRORS_TOTAL)
		result = SMI_CALL(nvmlDeviceGetTotalEccErrors, device, type, counter, &n);
	else
		result = SMI_CALL(nvmlDeviceGetMemoryErrorCounter, device, type, counter,
			(nvmlMemoryLocation_t)location, &n);
	smi_value_set_number(value, result, (double)n);
}
